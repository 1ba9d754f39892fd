package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// errMemoryInUse: the shared memory of a crashed server is still in use.
var errMemoryInUse = errors.New("an earlier Postgres has not ended yet")

// fullDiskLines is how many lines after one about a full disk the server's end is put down to it.
const fullDiskLines = 20

// maxLineBytes is the length at which a line of the server is cut.
const maxLineBytes = 8 << 10

// journal passes the lines that a server writes on to a logger, and keeps the last fatal one, and one about a full disk
// for a while. It is an io.Writer that never fails.
type journal struct {
	log *slog.Logger
	// running is set between start and stop. Outside of it, refused connections and ends are expected, and logged at
	// debug.
	running atomic.Bool

	mu      sync.Mutex
	partial []byte
	level   slog.Level
	fatal   string
	full    string // of the last fullDiskLines lines, the last about a full disk
	behind  int    // lines after full
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.partial, j.level, j.fatal, j.full = nil, slog.LevelDebug, "", ""
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.partial = append(j.partial, p...)
	for {
		line, rest, found := cutLine(j.partial)
		if !found && len(j.partial) <= maxLineBytes {
			return len(p), nil
		}
		j.partial = rest
		j.line(line[:min(len(line), maxLineBytes)])
	}
}

// levels are those of severities for an operator. A client reports the ERROR that ends its statement, and each client
// the end of its connection, also one that was cancelled when it had ended.
var levels = map[string]slog.Level{
	"FATAL": slog.LevelError, "PANIC": slog.LevelError, "WARNING": slog.LevelWarn, "LOG": slog.LevelInfo,
	"ERROR": slog.LevelDebug, "NOTICE": slog.LevelDebug, "INFO": slog.LevelDebug, "DEBUG": slog.LevelDebug,
}

// line logs one line at the level of its severity; a line without one (DETAIL, HINT, …) belongs to the line before.
func (j *journal) line(line string) {
	name, text, _ := strings.Cut(line, ":  ")
	if level, ok := levels[name]; ok {
		if ofClient(text) {
			level = slog.LevelDebug
		}
		line, j.level = text, level
		if level == slog.LevelError {
			j.fatal = line
		}
	}
	if j.behind++; isFullDisk(line) {
		j.full, j.behind = line, 0
	} else if j.behind > fullDiskLines {
		j.full = ""
	}
	level := j.level
	if !j.running.Load() {
		level = slog.LevelDebug
	}
	j.log.Log(context.Background(), level, "postgres: "+line)
}

// ofClient reports whether a line is about the end of a client's connection, which the client reports.
func ofClient(text string) bool {
	return strings.HasPrefix(text, "terminating connection ") || strings.HasSuffix(text, "did not match any process") ||
		text == "connection to client lost" || strings.HasPrefix(text, "could not send data to client") ||
		strings.HasPrefix(text, "could not receive data from client") || refusals.MatchString(text)
}

// refusals are what Postgres says to each client that it refuses while it starts, recovers or stops.
var refusals = regexp.MustCompile(`^the database system is (in recovery mode|not yet accepting connections|` +
	`starting up|shutting down)`)

// isFullDisk reports whether a program of Postgres, which has the locale C, says that the disk is full.
func isFullDisk(text string) bool { return strings.Contains(text, "No space left on device") }

// fullDisk is the error of a Postgres that ended because its disk is full.
type fullDisk string

// Error implements error.
func (e fullDisk) Error() string { return string(e) }

// Unwrap lets the error be told from others.
func (fullDisk) Unwrap() error { return syscall.ENOSPC }

// explain returns an error with the given text and the server's last fatal line, or the one that says that the disk is
// full, which the fatal one does not say always.
func (j *journal) explain(what string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.full != "":
		return fullDisk(fmt.Sprintf("%s, because the disk is full: make room there, and try again (%s)", what, j.full))
	case j.fatal == "":
		return errors.New(what)
	case strings.HasPrefix(j.fatal, "pre-existing shared memory block"):
		return fmt.Errorf("%s: %w (%s)", what, errMemoryInUse, j.fatal)
	}
	return fmt.Errorf("%s: %s", what, j.fatal)
}
