// Package child reads documents in child processes: the same program, run again for one document, within bounds of time
// and memory. A hostile document can crash only its child, and ends as an UnreadableError.
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
	"runtime"
	"syscall"
	"time"

	"github.com/loci-memory/loci/files/document"
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
	Command  []string         // a program that calls Main with its last argument, which is added
	Document document.Readers // the child's readers
	TempDir  string           // holds a document for its child; empty is the system's
	Log      *slog.Logger     // gets the standard error of a child that failed; nil logs nothing

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
	file, err := document.NewSpool(r.TempDir)
	if err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	defer file.Close()
	if _, err = io.Copy(file, in.Body); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	return r.run(ctx, in, file.File)
}

func (r *Reader) run(ctx context.Context, in document.Input, file *os.File) (document.Text, error) {
	temp, err := os.MkdirTemp(r.TempDir, document.SpoolName)
	if err != nil {
		return document.Text{}, fmt.Errorf("make a directory for the child: %w", err)
	}
	defer os.RemoveAll(temp)
	req := request{MediaType: in.MediaType, CacheDir: r.Document.CacheDir, TempDir: temp, PDFToText: r.Document.PDFToText,
		MemoryBytes: cmp.Or(r.MemoryBytes, DefaultMemoryBytes), CPU: cmp.Or(r.CPU, DefaultCPU)}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(r.Patience, DefaultPatience))
	defer cancel()
	out, errs := &document.LimitedBuffer{LeftBytes: maxHeaderBytes + document.MaxTextBytes}, &tail{}
	cmd := exec.CommandContext(bounded, r.Command[0], append(r.Command[1:len(r.Command):len(r.Command)], req.String())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, out, errs
	cmd.Env = []string{"TMPDIR=" + temp} // without the server's secrets
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { // kills the child and all that it started
		if syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	cmd.WaitDelay = time.Second

	runtime.LockOSThread() // the child dies with the thread that started it
	err = cmd.Run()
	runtime.UnlockOSThread()
	var text document.Text
	if err == nil {
		text, err = readAnswer(out.Held.Bytes())
	}
	if _, unreadable := errors.AsType[*document.UnreadableError](err); err == nil || unreadable {
		return text, err
	}
	err = req.verdict(ctx, bounded, cmd.ProcessState, errs, err)
	if r.Log != nil && ctx.Err() == nil {
		r.Log.Warn("a document could not be read", "media_type", in.MediaType, "size_bytes", in.SizeBytes,
			"error", err, "stderr", string(errs.held))
	}
	return document.Text{}, err
}
