// Package document reads the text of documents. It turns the bytes of a format into Markdown, and records on which
// lines the pages begin.
//
// Each file uses only the files named before it:
//   - what all formats share: mediatype.go omitted.go document.go limits.go inline.go table.go markdown.go
//     vocabulary.go hyphens.go ole.go programs.go pages.go scans.go pictures.go
//   - HTML and text: htmlnodes.go stylesheet.go htmlshown.go htmlforms.go htmlbounds.go html.go charsets.go
//     charset.go languages.go detect.go terminal.go decode.go
//   - messages: mailheader.go mailpart.go
//   - packed formats: zip.go advice.go ipynb.go xml.go properties.go archive.go xmltree.go formula.go
//   - Office: embedded.go footers.go docxlist.go styles.go drawing.go diagram.go chart.go docxstyle.go docxsymbols.go
//     docxtext.go docxchunk.go docx.go sheet.go sheetlanguages.go numberformat.go sheetformats.go xlsxcells.go
//     sheetlinks.go xlsxdrawn.go sheetcontrols.go xlsx.go readingorder.go pptx.go
//   - OpenDocument and EPUB: odfstyle.go odfform.go odflist.go odftable.go odf.go odp.go epub.go
//   - recognizing formats, and mail: office.go sniff.go mailfiles.go mailversions.go mail.go
//   - reading any format: pdfpage.go pdfobjects.go pdfplace.go pdfbidi.go pdfraised.go pdfturned.go pdfdrawn.go
//     pdfappearance.go pdfform.go pdflinks.go pdfnotes.go pdf.go read.go pdfimage.go
package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Input is a document to read.
type Input struct {
	MediaType string // as Sniff returns it
	Charset   string // of a plain text; empty: it is found
	SizeBytes int64
	Body      io.Reader // an io.ReaderAt is read in place; any other reader is read into memory if the format needs that

	Scans bool     // OCR will read pages without text, and pictures: a document without any other text is no error
	Log   *PageLog // nil: nobody follows the reading
}

// PageLog follows the reading of one document. Its functions may be nil.
type PageLog struct {
	Read func(pages, total int)                                 // so many pages are read
	Kept map[int]string                                         // pages that OCR read in an earlier attempt, from 1
	Keep func(ctx context.Context, page int, text string) error // keeps a page that OCR read for a later attempt
}

// Text is the text of a document: valid UTF-8 without NUL, with lines that end in LF.
type Text struct {
	Text     string
	Charset  string     // charset of a plain-text format, such as "utf-8"; empty for other formats
	Sure     float64    // probability, from 0 to 1, that Charset is right
	Pages    []int      // line, from 1, on which each page, slide or sheet begins, ascending; nil if there are no pages
	Omitted  []Omission // what the document holds and the text does not; never nil from Readers.Read
	Pictures []Picture  // that OCR may read, if Input.Scans is set; their marks are in the text
	Unread   []int      // pages of a PDF, from 1, that have content and no text of their own
	ReadBy   []ReadBy   // what programs of the operator read
}

// UnreadableError says, in a sentence for the uploader, why a document gives no text. Reading it again does not help.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

func unreadable(format string, args ...any) *UnreadableError {
	return &UnreadableError{Reason: fmt.Sprintf(format, args...)}
}

// Reading was ended before it was done. Reading the document again may succeed.
var (
	ErrCutShort = errors.New("reading the document was cut short") // its process was killed, perhaps for lack of memory
	ErrBusy     = errors.New("the machine is too busy to read the document")
	ErrStuck    = errors.New("a program of the operator was not done in its time")
	ErrGoesOn   = errors.New("the document has pages left, and those that were read are kept")
)

// Readers read documents of all formats. The zero value is ready to use.
type Readers struct {
	CacheDir string // keeps compiled programs between runs; empty: they are not kept
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

// seekable returns the body. If it can only be read from beginning to end, it is read into memory first.
func (in Input) seekable() (*io.SectionReader, error) {
	reader, ok := in.Body.(io.ReaderAt)
	if !ok {
		raw, err := in.bytes()
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	return io.NewSectionReader(reader, 0, in.SizeBytes), nil
}

var errRTF = unreadable("RTF documents are not read. Save the document as DOCX or plain text, and upload that.")
