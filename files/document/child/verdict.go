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

// verdict returns why a child gave no answer: the caller cancelled it, the document is at fault, or neither.
func (q request) verdict(ctx, bounded context.Context, state *os.ProcessState, errs *tail, err error) error {
	tooMuch := func(format string, limit any) error {
		return &document.UnreadableError{Reason: fmt.Sprintf("Reading this file "+format+
			". Split it, or save it in a simpler form, and upload that.", limit)}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case state == nil:
		return fmt.Errorf("start a process to read the document: %w", err)
	case bounded.Err() != nil:
		return fmt.Errorf("%w: it was not done in its time", document.ErrCutShort)
	case state.ExitCode() == ExitMemory, NoMemory(string(errs.held)):
		return tooMuch("needed more than %d MiB of memory", q.MemoryBytes>>20)
	case state.ExitCode() == ExitTime:
		return tooMuch("took more than %s of computing", q.CPU)
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
		"Open it in the program it is for, save it again, and upload that."}
}

// NoMemory reports whether a program said that the system refuses it memory.
func NoMemory(said string) bool { return noMemory.MatchString(said) }

var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to allocate|` +
	`pthread_create failed|failed to create new OS thread`)

// wasKilled reports whether somebody else killed the child, as the system does when memory runs out.
func wasKilled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
