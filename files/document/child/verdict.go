package child

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/sandbox"
)

// verdict returns why a child gave no answer: the caller cancelled it, the document is at fault, or neither.
func (q request) verdict(ctx context.Context, err error) error {
	tooMuch := func(format string, limit any) error {
		return &document.UnreadableError{Reason: fmt.Sprintf("Reading this file "+format+
			". Split it, or save it in a simpler form, and upload that.", limit)}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sandbox.ErrStart):
		return fmt.Errorf("read the document: %w", err)
	case errors.Is(err, sandbox.ErrPatience):
		return fmt.Errorf("%w: %w", document.ErrBusy, err)
	case errors.Is(err, sandbox.ErrKilled):
		return fmt.Errorf("%w: %w", document.ErrCutShort, err)
	case errors.Is(err, sandbox.ErrMemory):
		return tooMuch("needed more than %d MiB of memory", q.MemoryBytes>>20)
	case errors.Is(err, sandbox.ErrCPU):
		return tooMuch("took more than %s of computing", q.CPU)
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
