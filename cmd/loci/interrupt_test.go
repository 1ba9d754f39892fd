package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An interrupted command says so, and exits with the signal's code, whatever its own result was.
func TestInterruptedCommandsFail(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	file := filepath.Join(t.TempDir(), "a.af")
	for _, c := range []struct {
		signal     syscall.Signal
		code       int
		args, want string
		before     bool // the signal comes before a request
	}{
		{syscall.SIGTERM, 143, "health", "loci: interrupted (terminated): nothing was changed", false},
		{syscall.SIGINT, 130, "agents list", "loci: interrupted (interrupt): nothing was changed", false},
		{syscall.SIGINT, 130, "agents export agent-123e4567-e89b-42d3-8456-426614174000 " + file,
			"no file was written", false},
		{syscall.SIGTERM, 143, "files delete notes a.md --yes", "may be done in whole, in part or not at all", false},
		{syscall.SIGTERM, 143, "doctor --database-url=postgres://127.0.0.1:1/none", "nothing was changed", true},
		{syscall.SIGINT, 130, "backup " + file + " --database-url=postgres://127.0.0.1:1/none", "no file was written", true},
		{syscall.SIGINT, 130, "keys revoke key-1 --database-url=postgres://127.0.0.1:1/none", "may be done", true},
		{syscall.SIGTERM, 0, "serve --addr=127.0.0.1:0 --database-url=postgres://127.0.0.1:1/none", "", true},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		args := strings.Fields(c.args)
		if c.before {
			end(interruption{c.signal})
		} else {
			args = append(args, "--addr="+hanging.URL)
			go func() { <-asked; end(interruption{c.signal}) }()
		}
		out, errs := newLines(), newLines()
		if code := run(ctx, args, out, errs); code != c.code || !strings.Contains(errs.String(), c.want) ||
			strings.Count(errs.String(), "\n") > 1 || out.String() != "" {
			t.Errorf("%s ended with %d: %q %q; want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
		end(nil)
	}
}

// A signal also ends a command that waits for a pipe: until somebody opens the pipe for writing, or writes to it.
func TestCommandsThatWaitForAPipeAreInterrupted(t *testing.T) {
	t.Parallel()
	reading := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(reading.Close)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	interrupt := func(ctx context.Context, args string) {
		t.Helper()
		out := newLines()
		if got := run(ctx, append(strings.Fields(args), pipe), out, out); got != 143 {
			t.Errorf("%s ended with %d: %s", args, got, out)
		}
	}
	commands := []string{"verify", "lab replay", "import sessions", "erase --yes", "agents import --addr=" + reading.URL,
		"memory compress tree-123e4567-e89b-42d3-8456-426614174000 --index"}
	ended, end := context.WithCancelCause(t.Context())
	end(interruption{syscall.SIGTERM})
	for _, args := range append(commands, "restore") {
		interrupt(ended, args)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for _, args := range commands {
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { end(interruption{syscall.SIGTERM}) })
		interrupt(ctx, args)
	}
}

// If a command has finished when the signal comes, it is not interrupted.
func TestFinishedCommandsAreNotInterrupted(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	end(interruption{syscall.SIGINT})
	out, errs := newLines(), newLines()
	if code := run(ctx, []string{"version"}, out, errs); code != 0 || out.String() == "" || errs.String() != "" {
		t.Errorf("ended with %d: %q %q", code, out, errs)
	}
}

// A question on a terminal does not delay an interruption.
func TestReadersAreInterrupted(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	input, typed := io.Pipe()
	go func() {
		_, _ = io.WriteString(typed, "ye")
		end()
	}()
	if text, err := io.ReadAll(interruptible{ctx, input}); len(text) > 2 || err == nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// All commands that the text of interruptions names exist.
func TestCommandsOfInterruptionsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, command := range runnable(newProgram(nil), true) {
		known[commandName(command)] = true
	}
	for name := range unchanged {
		if !known[name] {
			t.Errorf("there is no command %q: %v", name, known)
		}
	}
	for name := range endedBySignal {
		if !known[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}
