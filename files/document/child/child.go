// Package child reads documents in child processes. A child is this program, run again for one document with limited
// time and memory. A hostile document can crash only its own child, and gives an UnreadableError.
//
// Each file uses only the files named before it: answer.go is the form of an answer, main.go the program of a child;
// verdict.go says why there is no answer, and child.go runs children.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// Limits of reading one document.
const (
	DefaultPatience    = 10 * time.Minute // wall-clock time, on a machine that may be busy with other work
	DefaultCPU         = 30 * time.Second // CPU time
	DefaultMemoryBytes = 1 << 30

	inProcessHTMLBytes = 1 << 20 // largest HTML page that is read without a child
)

// Reader reads documents in children.
type Reader struct {
	Command  []string         // a program that calls Main with its last argument; Reader appends that argument
	Document document.Readers // readers that the child uses
	TempDir  string           // holds a document for its child; empty: the system's temporary directory
	Log      *slog.Logger     // receives the standard error of a failed child; nil: nothing is logged

	Patience    time.Duration // 0 means DefaultPatience
	CPU         time.Duration // 0 means DefaultCPU; whole seconds
	MemoryBytes int64         // 0 means DefaultMemoryBytes
}

// Read returns the text of a document. Plain text cannot harm its reader and is read without a child.
// *document.UnreadableError if the document has no text that can be read within the limits. document.ErrCutShort if the
// child was killed from outside. document.ErrBusy if it was not done within Patience although it had CPU time left.
func (r *Reader) Read(ctx context.Context, input document.Input) (document.Text, error) {
	if !input.IsComplex() && (!input.IsHTML() || input.SizeBytes <= inProcessHTMLBytes) {
		return r.Document.Read(ctx, input)
	}
	if file, ok := input.Body.(*os.File); ok {
		return r.run(ctx, input, file)
	}
	body := &spool.Spool{Dir: r.TempDir}
	defer body.Close()
	if _, err := io.Copy(body, input.Body); err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	file, err := body.File()
	if err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	return r.run(ctx, input, file)
}

func (r *Reader) run(ctx context.Context, input document.Input, file *os.File) (document.Text, error) {
	output := &document.LimitedBuffer{LeftBytes: maxHeaderBytes + document.MaxTextBytes}
	var text document.Text
	err := r.ask(ctx, r.request(input), file, &progressWriter{to: output, log: input.Log}, func() (err error) {
		text, err = readAnswer(output.Held.Bytes())
		return err
	})
	return text, err
}

// Image returns a page of a PDF, from 1, as a picture (PNG). Its errors are those of Read.
func (r *Reader) Image(ctx context.Context, input document.Input, file *os.File, page int) (image []byte, err error) {
	req := r.request(input)
	req.Page = page
	return r.image(ctx, req, file)
}

// Picture returns a picture in a document, by its document.Picture.Part. Its errors are those of Read.
func (r *Reader) Picture(ctx context.Context, input document.Input, file *os.File, part string) ([]byte, error) {
	req := r.request(input)
	req.Part = part
	return r.image(ctx, req, file)
}

func (r *Reader) image(ctx context.Context, req request, file *os.File) (image []byte, err error) {
	output := &document.LimitedBuffer{LeftBytes: maxHeaderBytes + document.MaxImageBytes}
	err = r.ask(ctx, req, file, output, func() (err error) {
		image, err = readImage(output.Held.Bytes())
		return err
	})
	return image, err
}

func (r *Reader) request(input document.Input) request {
	return request{MediaType: input.MediaType, Charset: input.Charset, CacheDir: r.Document.CacheDir, Scans: input.Scans,
		MemoryBytes: cmp.Or(r.MemoryBytes, DefaultMemoryBytes), CPU: cmp.Or(r.CPU, DefaultCPU)}
}

// ask runs a child for a request. read reads its answer.
func (r *Reader) ask(ctx context.Context, req request, file *os.File, output io.Writer, read func() error) error {
	stderr, err := sandbox.Child{Command: append(slices.Clip(r.Command), req.String()), Stdin: file,
		Stdout: output, Patience: cmp.Or(r.Patience, DefaultPatience)}.Run(ctx)
	if err == nil {
		err = read()
	}
	if _, unreadable := errors.AsType[*document.UnreadableError](err); err == nil || unreadable {
		return err
	}
	err = req.verdict(ctx, err)
	if r.Log != nil && ctx.Err() == nil {
		r.Log.Warn("a document could not be read", "media_type", req.MediaType, "error", err, "stderr", stderr)
	}
	return err
}
