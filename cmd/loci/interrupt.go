package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.signal.String() }

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. A second signal ends the program at once.
func untilSignal() (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			if s, ok := s.(syscall.Signal); ok {
				cancel(interruption{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// endedBySignal are commands that run until a signal ends them. They then exit with 0.
var endedBySignal = map[string]bool{"serve": true, "mcp": true}

// unchanged maps commands that change nothing when they are interrupted, or that go on where they were, to the message
// about that.
var unchanged = map[string]string{
	"agents list": asBefore, "config": asBefore, "doctor": asBefore, "files list": asBefore, "files text": asBefore,
	"folders list": asBefore, "grep": asBefore, "health": asBefore, "keys list": asBefore,
	"orgs list": asBefore, "search": asBefore, "stats": asBefore, "verify": asBefore,
	"lab replay":      "what was replayed until then is printed",
	"import sessions": "what was taken in stays; with the same --agent it is not taken in again",
	"agents export":   "no file was written", "export": "no file was written", "backup": "no file was written",
}

const asBefore = "nothing was changed"

// ended returns the exit code of a command that returned err. A command that a signal interrupted exits with 130 for
// SIGINT or 143 for SIGTERM, as shells do, whatever err is.
func ended(ctx context.Context, errs io.Writer, command string, err error) int {
	cause, interrupted := errors.AsType[interruption](context.Cause(ctx))
	switch {
	case ctx.Err() != nil && endedBySignal[command] && errors.Is(err, context.Canceled):
		return 0 // the signal came before the server was ready
	case err == nil || !interrupted || endedBySignal[command]:
		return exitCode(errs, err)
	}
	effect, isUnchanged := unchanged[command]
	if !isUnchanged {
		effect = "what it was asked for may be done in whole, in part or not at all; look before you run it again"
	}
	fmt.Fprintf(errs, "loci: interrupted (%s): %s\n", cause, effect)
	return 128 + int(cause.signal)
}

// commandName returns the words of a command, such as 'orgs delete'. A group's are those of its default command.
func commandName(line *cobra.Command) string {
	return strings.TrimPrefix(line.CommandPath(), line.Root().Name()+" ")
}

// interruptible is a reader that ends with a context, even while it waits for a terminal; closing a terminal would not
// end its read.
type interruptible struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader. A read that is abandoned writes only to a buffer of its own.
func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		buffer := make([]byte, len(p))
		n, err := r.Reader.Read(buffer)
		done <- result{buffer[:n], err}
	}()
	select {
	case got := <-done:
		return copy(p, got.text), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// untilEnd is a reader of a file that checks its context before each read.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r untilEnd) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
