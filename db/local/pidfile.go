package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pidFile is the content of postmaster.pid, a file that a server writes into its data directory.
type pidFile struct {
	// pid is the server's process, or 0 if there is no file or no number in it.
	pid   int
	ready bool
	lines []string
}

func pidFilePath(data string) string { return filepath.Join(data, "postmaster.pid") }

// readPIDFile reads the process from the first line and the state from the eighth. The server fills these lines in
// while it starts.
func readPIDFile(data string) pidFile {
	text, _ := os.ReadFile(pidFilePath(data)) // empty without the file, so no process and not ready
	f := pidFile{lines: strings.Split(string(text), "\n")}
	f.pid, _ = strconv.Atoi(strings.TrimSpace(f.lines[0])) // 0 if the line is not written yet
	f.ready = len(f.lines) > 7 && strings.TrimSpace(f.lines[7]) == "ready"
	return f
}

// takeOver prepares data for a new server. It stops a server that has outlived its parent, and disarms the pid file of
// a crashed server. The home is locked, so neither belongs to another running Loci.
func takeOver(ctx context.Context, data string) error {
	f := readPIDFile(data)
	if f.pid > 0 && runsOn(f.pid, data) {
		if err := stopOrphan(ctx, f.pid, data); err != nil {
			return err
		}
		f = readPIDFile(data)
	}
	if err := disarm(f, data); err != nil {
		return fmt.Errorf("clear the pid file of a crashed Postgres: %w", err)
	}
	return nil
}

// disarm changes the pid file of a crashed server, which would stop the new server if the crashed server's process
// number is in use again. It writes this process's number: Postgres ignores its own parent, but still checks that
// nobody uses the shared memory named in the file.
func disarm(f pidFile, data string) error {
	path := pidFilePath(data)
	if f.pid <= 0 {
		return os.RemoveAll(path)
	}
	f.lines[0] = strconv.Itoa(os.Getpid())
	return os.WriteFile(path, []byte(strings.Join(f.lines, "\n")), 0o600)
}

// stopOrphan stops a server that has outlived its parent, cleanly if possible.
func stopOrphan(ctx context.Context, pid int, data string) error {
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, fastPatience}, {syscall.SIGQUIT, immediatePatience}} {
		if err := syscall.Kill(pid, step.signal); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("stop the Postgres (pid %d) that still runs on %s: %w; end it, then start again", pid, data, err)
		}
		deadline := time.Now().Add(step.patience)
		err := poll(ctx, func() bool { return !runsOn(pid, data) || time.Now().After(deadline) })
		if err != nil {
			return fmt.Errorf("wait for the Postgres (pid %d) that still runs on %s: %w", pid, data, err)
		}
		if !runsOn(pid, data) {
			return nil
		}
	}
	return fmt.Errorf("a Postgres (pid %d) still runs on %s and does not stop: end it, then start again", pid, data)
}

// Running returns the URLs (see URL and ServingURL) of the private Postgres that another process runs on home. ok is
// false if there is none.
func Running(home string) (url, servingURL string, ok bool) {
	dir, err := filepath.EvalSymlinks(home)
	if err != nil {
		return "", "", false
	}
	data := filepath.Join(dir, "postgres")
	f := readPIDFile(data)
	if !f.ready || !runsOn(f.pid, data) || f.lines[4] == "" {
		return "", "", false
	}
	s := socket{dir: f.lines[4]} // the fifth line is the socket's directory
	return s.url("loci", superuser), s.url("loci", serving), true
}

// cutLine cuts a text after its first line.
func cutLine(text []byte) (line string, rest []byte, found bool) {
	before, after, found := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimRight(before, "\r")), after, found
}
