// Package document reads the text of documents: it turns the bytes of a format into Markdown, and keeps where its pages begin. It knows
// nothing of where documents come from or go to.
package document

import (
	"bytes"
	"fmt"
	"io"
)

// Input is a document to read.
type Input struct {
	MediaType string // as Sniff tells it
	SizeBytes int64
	Body      io.Reader // an io.ReaderAt, such as a file, is read in place; anything else is taken whole where a format needs that
}

// Text is what a reader makes of a document: valid UTF-8 without NUL, its lines ended by LF.
type Text struct {
	Text    string
	Charset string // of a format that is plain text, as "utf-8"; empty for others
	Pages   []int  // the 1-based line on which each page, slide or sheet begins, ascending; nil where the format has none
}

// UnreadableError says, in a sentence for whoever uploaded it, why a document gives no text; reading it again would not help.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

func unreadable(format string, args ...any) *UnreadableError {
	return &UnreadableError{Reason: fmt.Sprintf(format, args...)}
}

// Read returns the text of a document. *UnreadableError if it has none that can be read.
func Read(in Input) (Text, error) {
	raw, err := in.bytes()
	if err != nil {
		return Text{}, err
	}
	text, charset, err := Decode(raw, DeclaredCharset(in.MediaType, "", raw))
	if err != nil {
		return Text{}, err
	}
	if in.MediaType == "text/html" || in.MediaType == "application/xhtml+xml" {
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
