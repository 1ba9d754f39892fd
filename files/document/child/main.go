package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// exitFailed is the exit code of a child that gives no answer. Go's runtime exits with 2.
const exitFailed = 1

// request is the argument of a child.
type request struct {
	MediaType   string        `json:"media_type"`
	Charset     string        `json:"charset,omitempty"`
	CacheDir    string        `json:"cache_dir,omitempty"`
	Scans       bool          `json:"scans,omitempty"` // document.Input.Scans
	Page        int           `json:"page,omitempty"`  // the page that is wanted as a picture; 0: the text is
	Part        string        `json:"part,omitempty"`  // the picture that is wanted; empty: the text is
	MemoryBytes int64         `json:"memory_bytes"`
	CPU         time.Duration `json:"cpu"`
}

// String returns the request as the argument of Main.
func (q request) String() string {
	raw, _ := json.Marshal(q) // strings and numbers always marshal
	return string(raw)
}

// Main is the program of a child. It limits the process, reads the document from stdin, and writes its answer to
// stdout. Before it reads the document, it prepares everything it needs and gives up all other rights.
func Main(argument string) error {
	var q request
	if err := json.Unmarshal([]byte(argument), &q); err != nil {
		return fmt.Errorf("this command is run by the server alone: %w", err)
	}
	sandbox.Limit(q.MemoryBytes, q.CPU)
	ready, err := document.Readers{CacheDir: q.CacheDir}.Prepare(q.MediaType)
	if err != nil {
		return answer(document.Text{}, err)
	}
	if err := sandbox.Enter(); err != nil {
		return err
	}
	info, err := os.Stdin.Stat()
	if err != nil {
		return fmt.Errorf("find the document: %w", err)
	}
	input := document.Input{MediaType: q.MediaType, Charset: q.Charset, SizeBytes: info.Size(), Body: os.Stdin,
		Scans: q.Scans, Log: &document.PageLog{Read: tell}}
	if q.Page > 0 {
		image, err := ready.Image(input, q.Page)
		return answer(document.Text{Text: string(image)}, err)
	}
	if q.Part != "" {
		image, err := ready.Picture(input, q.Part)
		return answer(document.Text{Text: string(image)}, err)
	}
	return answer(ready.Read(input))
}

// tellPages is how often a child tells of its progress, in pages.
const tellPages = 10

// tell writes a line of progress to stdout.
func tell(pages, total int) {
	if pages%tellPages == 0 {
		_ = json.NewEncoder(os.Stdout).Encode(progress{pages, total}) // the answer meets the same error
	}
}

// answer writes to stdout what readAnswer reads.
func answer(text document.Text, err error) error {
	h := header{Charset: text.Charset, Sure: text.Sure, Pages: text.Pages, Omitted: text.Omitted,
		Unread: text.Unread, Pictures: text.Pictures, TextBytes: len(text.Text)}
	if unreadable, ok := errors.AsType[*document.UnreadableError](err); ok {
		h = header{Unreadable: unreadable.Reason}
	} else if err != nil {
		h = header{Failed: err.Error()}
	}
	if err := json.NewEncoder(os.Stdout).Encode(h); err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(text.Text)
	return err
}
