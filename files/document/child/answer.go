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
	TextBytes  int                 `json:"text_bytes"`
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
	case len(h.Omitted) > document.MaxOmissions:
		return document.Text{}, fmt.Errorf("the answer has %d omissions; %d are its limit", len(h.Omitted),
			document.MaxOmissions)
	}
	for _, omitted := range h.Omitted {
		if err := omitted.Check(); err != nil {
			return document.Text{}, err
		}
	}
	return document.Text{Text: string(text), Charset: h.Charset, Sure: h.Sure, Pages: h.Pages,
		Omitted: append([]document.Omission{}, h.Omitted...)}, nil
}
