package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"

	"github.com/loci-memory/loci/files/document"
)

// verdict says whose fault it is that a child gave no answer: that of who called it off, of the document, or of neither.
func (q request) verdict(ctx, bounded context.Context, state *os.ProcessState, errs *tail, err error) error {
	memory := &document.UnreadableError{Reason: fmt.Sprintf(
		"Reading this file needed more than %d MiB of memory. Split it, or save it in a simpler form, and upload that.", q.MemoryBytes>>20)}
	time := &document.UnreadableError{Reason: fmt.Sprintf(
		"Reading this file took more than %s of computing. Split it, or save it in a simpler form, and upload that.", q.CPU)}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case state == nil:
		return fmt.Errorf("start a process to read the document: %w", err)
	case bounded.Err() != nil:
		return fmt.Errorf("%w: it was not done in its time", document.ErrCutShort)
	case state.ExitCode() == exitMemory, noMemory.Match(errs.held):
		return memory
	case state.ExitCode() == exitTime:
		return time
	case wasKilled(state):
		return fmt.Errorf("%w: its process was killed", document.ErrCutShort)
	}
	if failed, ok := errors.AsType[*failedError](err); ok {
		return failed
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitFailed {
		return fmt.Errorf("read the document: %w", err)
	}
	return &document.UnreadableError{Reason: "This file made its reader break down: it is damaged, or made to do that. " +
		"Open it in the program it is for, save it anew, and upload that."}
}

// noMemory is what programs say that the system refused memory.
var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate`)

// wasKilled tells a child that somebody else killed, as the system does when memory runs out.
func wasKilled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
