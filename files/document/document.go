// Package document reads the text of documents: it turns the bytes of a format into Markdown, and records on which
// lines its pages begin.
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

// Read returns the text of a document, *UnreadableError if it has none that can be read.
func (r Readers) Read(_ context.Context, in Input) (Text, error) {
	ready, err := r.Prepare(in.MediaType)
	if err != nil {
		return Text{}, err
	}
	return ready.Read(in)
}

// Ready is a reader that has all that it needs of the system: it opens no file and compiles nothing any more.
type Ready struct{ engine *engine }

// Prepare readies the reader of one document of a media type.
func (r Readers) Prepare(mediaType string) (Ready, error) {
	if mediaType != pdfType {
		return Ready{}, nil
	}
	engine, err := r.pdfium()
	return Ready{engine}, err
}

// Read returns the text of the document, *UnreadableError if it has none that can be read.
func (r Ready) Read(in Input) (Text, error) {
	if r.engine != nil {
		defer r.engine.close()
		return r.engine.read(in)
	}
	if read, ok := Office(in.MediaType); ok {
		body, err := in.seekable()
		if err != nil {
			return Text{}, err
		}
		return read(body, in.SizeBytes)
	}
	return readText(in)
}

const pdfType = "application/pdf"

// IsHTML reports whether the document is HTML.
func (in Input) IsHTML() bool {
	return in.MediaType == "text/html" || in.MediaType == "application/xhtml+xml"
}

// IsComplex reports whether the document needs a reader so large that hostile bytes may harm it.
func (in Input) IsComplex() bool {
	_, office := Office(in.MediaType)
	return office || in.IsPDF()
}

// IsPDF reports whether the document is a PDF.
func (in Input) IsPDF() bool { return in.MediaType == pdfType }

func readText(in Input) (Text, error) {
	raw, err := in.bytes()
	if err != nil {
		return Text{}, err
	}
	text, charset, err := Decode(raw, DeclaredCharset(in.MediaType, "", raw))
	if err != nil {
		return Text{}, err
	}
	if in.IsHTML() {
		text, err = HTML(text)
	}
	return Text{Text: text, Charset: charset}, err
}

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
