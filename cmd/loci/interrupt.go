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
)

// interruption is the cause of a context that a signal ended.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.signal.String() }

// untilSignal returns a context that the first signal to end ends. A second one ends the program at once.
func untilSignal() (ctx context.Context, stop func()) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			if s, ok := s.(syscall.Signal); ok {
				end(interruption{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(came); end(nil) }
}

// endedBySignal are the commands that run until a signal ends them, and then exit with 0.
var endedBySignal = map[string]bool{"serve": true, "mcp": true}

// unchanged are the commands that an interruption leaves without effect, and what is said of it.
var unchanged = map[string]string{
	"agents list": asBefore, "config": asBefore, "doctor": asBefore, "files list": asBefore, "files text": asBefore,
	"folders list": asBefore, "grep": asBefore, "health": asBefore, "keys list": asBefore, "migrate plan": asBefore,
	"orgs list": asBefore, "search": asBefore, "stats": asBefore, "verify": asBefore,
	"agents export": "no file was written", "export": "no file was written", "backup": "no file was written",
}

const asBefore = "nothing was changed"

// ended returns the exit code of a command that returned err. What a signal interrupted is not done, whatever err says
// of it: 130 for SIGINT and 143 for SIGTERM, as shells have it.
func ended(ctx context.Context, errs io.Writer, command string, err error) int {
	cause, interrupted := errors.AsType[interruption](context.Cause(ctx))
	switch {
	case ctx.Err() != nil && endedBySignal[command] && errors.Is(err, context.Canceled):
		return 0 // the signal came before the server served
	case err == nil || !interrupted || endedBySignal[command]:
		return exitCode(errs, err)
	}
	effect, known := unchanged[command]
	if !known {
		effect = "what it was asked for may be done in whole, in part or not at all; look before you run it again"
	}
	fmt.Fprintf(errs, "loci: interrupted (%s): %s\n", cause, effect)
	return 128 + int(cause.signal)
}

// commandName returns the words of a command without its arguments: kong names 'orgs delete' so.
func commandName(command string) string {
	words := strings.Fields(command)
	for i, word := range words {
		if strings.HasPrefix(word, "<") || strings.HasPrefix(word, "[") {
			return strings.Join(words[:i], " ")
		}
	}
	return strings.Join(words, " ")
}

// interruptible is a reader that a context ends: also one that waits for a terminal, which closing it would not wake.
type interruptible struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader. The buffer of the read that is left behind is its own.
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
		own := make([]byte, len(p))
		n, err := r.Reader.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case got := <-done:
		return copy(p, got.text), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// untilEnd is a reader of a file that a context ends between two reads.
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
