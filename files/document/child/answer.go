package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/files/document"
)

// header is the first line of a child's answer. The text follows.
type header struct {
	Unreadable string              `json:"unreadable,omitempty"` // the document cannot be read, and why
	Failed     string              `json:"failed,omitempty"`     // something else failed
	Charset    string              `json:"charset,omitempty"`
	Sure       float64             `json:"sure,omitempty"`
	Pages      []int               `json:"pages,omitempty"`
	Omitted    []document.Omission `json:"omitted,omitempty"`
	Unread     []int               `json:"unread,omitempty"`
	Pictures   []document.Picture  `json:"pictures,omitempty"`
	TextBytes  int                 `json:"text_bytes"`
}

// progress is a line before the header: so many pages are read.
type progress struct {
	Read  int `json:"pages_read"`
	Total int `json:"pages_total"`
}

const maxHeaderBytes = 1 << 20

// failedError is the reason why a child could not read at all.
type failedError struct{ reason string }

func (e *failedError) Error() string { return "read the document: " + e.reason }

// readAnswer returns the text in an answer. It checks everything, because a document may have taken over the child.
func readAnswer(answer []byte) (document.Text, error) {
	line, text, ok := bytes.Cut(answer, []byte("\n"))
	var h header
	if !ok || len(line) > maxHeaderBytes || json.Unmarshal(line, &h) != nil {
		return document.Text{}, errors.New("the answer has no header")
	}
	switch {
	case strings.Contains(h.Charset+h.Failed, "\x00"):
		return document.Text{}, errors.New("the answer's header is not text")
	case h.Unreadable != "":
		reason := strings.ToValidUTF8(strings.ReplaceAll(h.Unreadable, "\x00", ""), "")
		return document.Text{}, &document.UnreadableError{Reason: reason}
	case h.Failed != "":
		return document.Text{}, &failedError{h.Failed}
	case len(text) != h.TextBytes:
		return document.Text{}, fmt.Errorf("the answer has %d bytes of text, and says %d", len(text), h.TextBytes)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return document.Text{}, errors.New("the answer is not text")
	case !slices.IsSorted(h.Pages) ||
		len(h.Pages) > 0 && (h.Pages[0] < 1 || h.Pages[len(h.Pages)-1] > bytes.Count(text, []byte("\n"))+1):
		return document.Text{}, errors.New("the answer has pages that are not there")
	case !slices.IsSorted(h.Unread) || len(h.Unread) > 0 && (h.Unread[0] < 1 || h.Unread[len(h.Unread)-1] > len(h.Pages)):
		return document.Text{}, errors.New("the answer has pages without text that are not there")
	case len(h.Omitted) > document.MaxOmissions:
		return document.Text{}, fmt.Errorf("the answer has %d omissions; %d are its limit", len(h.Omitted),
			document.MaxOmissions)
	}
	if len(h.Pictures) > document.MaxPictures {
		return document.Text{}, fmt.Errorf("the answer has %d pictures; %d are its limit", len(h.Pictures),
			document.MaxPictures)
	}
	for _, p := range h.Pictures {
		if err := p.Check(); err != nil {
			return document.Text{}, err
		}
	}
	for _, omitted := range h.Omitted {
		if err := omitted.Check(); err != nil {
			return document.Text{}, err
		}
	}
	return document.Text{Text: string(text), Charset: h.Charset, Sure: h.Sure, Pages: h.Pages, Unread: h.Unread,
		Omitted: append([]document.Omission{}, h.Omitted...), Pictures: h.Pictures}, nil
}

// readImage returns the picture in an answer. What reads it is confined, so only its form is checked.
func readImage(answer []byte) ([]byte, error) {
	line, image, ok := bytes.Cut(answer, []byte("\n"))
	var h header
	switch {
	case !ok || len(line) > maxHeaderBytes || json.Unmarshal(line, &h) != nil:
		return nil, errors.New("the answer has no header")
	case h.Unreadable != "":
		reason := strings.ToValidUTF8(strings.ReplaceAll(h.Unreadable, "\x00", ""), "")
		return nil, &document.UnreadableError{Reason: reason}
	case h.Failed != "":
		return nil, &failedError{h.Failed}
	case len(image) != h.TextBytes || document.PictureType(image) == "":
		return nil, errors.New("the answer is no picture")
	}
	return image, nil
}

// progressWriter passes on an answer without the lines of its progress.
type progressWriter struct {
	to      *document.LimitedBuffer
	log     *document.PageLog
	line    []byte // the beginning of a line that may tell of progress
	started bool   // the header has begun
}

// progressMark begins a line of progress.
const progressMark = `{"pages_read":`

// maxProgressBytes is the size limit of a line of progress.
const maxProgressBytes = 100

// Write implements io.Writer.
func (w *progressWriter) Write(p []byte) (int, error) {
	n := len(p)
	for !w.started {
		w.line = append(w.line, p...)
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		most := min(len(w.line), len(progressMark))
		if string(w.line[:most]) != progressMark[:most] || !ok && len(w.line) > maxProgressBytes {
			w.started, p = true, w.line
			break
		}
		if !ok {
			return n, nil
		}
		var told progress
		if json.Unmarshal(line, &told) == nil && told.Read > 0 && told.Read <= told.Total &&
			told.Total <= document.MaxPages && w.log != nil && w.log.Read != nil {
			w.log.Read(told.Read, told.Total)
		}
		w.line, p = slices.Clone(rest), nil
		if len(w.line) == 0 {
			return n, nil
		}
	}
	if _, err := w.to.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}
