// Package child reads documents in child processes: the same program, run again for one document, within bounds of time
// and memory. A hostile document can crash only its child, and ends as an UnreadableError.
//
// Each file uses those that are named before it: answer.go is the form of an answer, main.go the program of a child;
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
	"os/exec"
	"slices"
	"time"

	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// Bounds of reading one document.
const (
	DefaultPatience    = 40 * time.Second // of wall clock
	DefaultCPU         = 30 * time.Second // of processors
	DefaultMemoryBytes = 1 << 30

	inProcessHTMLBytes = 1 << 20 // of HTML that is read without a process of its own
)

// Reader reads documents in children.
type Reader struct {
	Command   []string         // a program that calls Main with its last argument, which is added
	Document  document.Readers // the child's readers
	PDFToText string           // the path of poppler's pdftotext, which then reads PDFs; empty reads them with PDFium
	TempDir   string           // holds a document for its child; empty is the system's
	Log       *slog.Logger     // gets the standard error of a child that failed; nil logs nothing

	Patience    time.Duration // 0 is DefaultPatience
	CPU         time.Duration // 0 is DefaultCPU; whole seconds
	MemoryBytes int64         // 0 is DefaultMemoryBytes
}

// Read returns the text of a document. Plain text, which cannot harm its reader, is read without a child.
// *document.UnreadableError if it has no text that can be read within the bounds; document.ErrCutShort if the child was
// killed from outside, or was not done within Patience although it had not used up its CPU time.
func (r *Reader) Read(ctx context.Context, in document.Input) (document.Text, error) {
	if !in.IsComplex() && (!in.IsHTML() || in.SizeBytes <= inProcessHTMLBytes) {
		return r.Document.Read(ctx, in)
	}
	body := &spool.Spool{Dir: r.TempDir}
	defer body.Close()
	if _, err := io.Copy(body, in.Body); err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	file, err := body.File()
	if err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	return r.run(ctx, in, file)
}

func (r *Reader) run(ctx context.Context, in document.Input, file *os.File) (document.Text, error) {
	req := request{MediaType: in.MediaType, CacheDir: r.Document.CacheDir,
		MemoryBytes: cmp.Or(r.MemoryBytes, DefaultMemoryBytes), CPU: cmp.Or(r.CPU, DefaultCPU)}
	out := &document.LimitedBuffer{LeftBytes: maxHeaderBytes + document.MaxTextBytes}
	if in.IsPDF() && r.PDFToText != "" {
		req.PDFToText, out.LeftBytes = r.PDFToText, document.MaxTextBytes
	}
	stderr, err := sandbox.Child{Command: append(slices.Clip(r.Command), req.String()), Stdin: file,
		Stdout: out, Patience: cmp.Or(r.Patience, DefaultPatience)}.Run(ctx)
	var text document.Text
	exit, failed := errors.AsType[*exec.ExitError](err)
	failed = failed && exit.Exited() && exit.ExitCode() != exitNoPDFToText
	switch {
	case req.PDFToText != "" && (err == nil || failed || out.LeftBytes < 0):
		return document.FromPDFToText(out, stderr, failed)
	case err == nil:
		text, err = readAnswer(out.Held.Bytes())
	}
	if _, unreadable := errors.AsType[*document.UnreadableError](err); err == nil || unreadable {
		return text, err
	}
	err = req.verdict(ctx, err)
	if r.Log != nil && ctx.Err() == nil {
		r.Log.Warn("a document could not be read", "media_type", in.MediaType, "size_bytes", in.SizeBytes,
			"error", err, "stderr", stderr)
	}
	return document.Text{}, err
}
