// Package document reads the text of documents: it turns the bytes of a format into Markdown, and records on which
// lines its pages begin.
//
// Each file uses those that are named before it:
//   - what all formats share: mediatype.go document.go limits.go inline.go table.go markdown.go pages.go
//   - HTML and text: stylesheet.go htmlbounds.go html.go charset.go decode.go
//   - packed formats: zip.go ipynb.go xml.go archive.go xmltree.go formula.go
//   - Office: styles.go docxlist.go docxstyle.go docxtext.go docx.go sheet.go xlsx.go pptx.go
//   - OpenDocument and EPUB: odflist.go odfstyle.go odftable.go odf.go odp.go epub.go
//   - any of them, and which it is: office.go sniff.go pdf.go pdftotext.go read.go
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Input is a document to read.
type Input struct {
	MediaType string // as Sniff returns it
	SizeBytes int64
	Body      io.Reader // an io.ReaderAt is read in place; any other is held in memory where a format needs that
}

// Text is the text of a document: valid UTF-8 without NUL, its lines ended by LF.
type Text struct {
	Text    string
	Charset string // of a format that is plain text, as "utf-8"; empty for others
	Pages   []int  // the 1-based line on which each page, slide or sheet begins, ascending; nil if there are none
}

// UnreadableError says, in a sentence for the uploader, why a document gives no text. Reading it again does not help.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

func unreadable(format string, args ...any) *UnreadableError {
	return &UnreadableError{Reason: fmt.Sprintf(format, args...)}
}

// ErrCutShort says that a reader was ended before it was done, because the machine's memory ran out or its processors
// were busy. Reading the document again may succeed.
var ErrCutShort = errors.New("reading the document was cut short")

// Readers read documents of all formats. The zero value is ready to use.
type Readers struct {
	CacheDir string // where compiled programs are kept between runs; empty keeps none
}

// IsHTML reports whether the document is HTML.
func (in Input) IsHTML() bool {
	return in.MediaType == "text/html" || in.MediaType == "application/xhtml+xml"
}

// IsPDF reports whether the document is a PDF.
func (in Input) IsPDF() bool { return in.MediaType == pdfType }

func (in Input) bytes() ([]byte, error) {
	var all bytes.Buffer
	all.Grow(int(in.SizeBytes) + bytes.MinRead)
	_, err := all.ReadFrom(in.Body)
	return all.Bytes(), err
}

// seekable returns the body, or all of its bytes if it can only be read from beginning to end.
func (in Input) seekable() (*io.SectionReader, error) {
	at, ok := in.Body.(io.ReaderAt)
	if !ok {
		raw, err := in.bytes()
		if err != nil {
			return nil, err
		}
		at = bytes.NewReader(raw)
	}
	return io.NewSectionReader(at, 0, in.SizeBytes), nil
}

var errRTF = unreadable("RTF documents are not read. Save the document as DOCX or plain text, and upload that.")
