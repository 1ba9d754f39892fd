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

// fullDiskLines: if the server ends within this many lines after a message about a full disk, the full disk is reported
// as the cause.
const fullDiskLines = 20

// maxLineBytes is the length at which a line of the server's output is cut.
const maxLineBytes = 8 << 10

// journal passes the lines that a server writes to a logger. It remembers the last fatal line, and for a while the last
// line about a full disk. It is an io.Writer that never fails.
type journal struct {
	log *slog.Logger
	// running is set between start and stop. Otherwise, refused connections and ended sessions are expected and logged at
	// debug level.
	running atomic.Bool

	mu      sync.Mutex
	partial []byte
	level   slog.Level
	fatal   string
	full    string // the last line about a full disk, if it is among the last fullDiskLines lines
	behind  int    // number of lines after full
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

// levels maps Postgres' severities to levels for an operator. ERROR is debug level: the client that sent the failed
// statement reports it. The end of a connection is reported by its client, too.
var levels = map[string]slog.Level{
	"FATAL": slog.LevelError, "PANIC": slog.LevelError, "WARNING": slog.LevelWarn, "LOG": slog.LevelInfo,
	"ERROR": slog.LevelDebug, "NOTICE": slog.LevelDebug, "INFO": slog.LevelDebug, "DEBUG": slog.LevelDebug,
}

// line logs one line at the level of its severity. A line without a severity (DETAIL, HINT, …) belongs to the line
// before.
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

// ofClient reports whether a line is about the end of a client's connection. The client reports that itself.
func ofClient(text string) bool {
	return strings.HasPrefix(text, "terminating connection ") || strings.HasSuffix(text, "did not match any process") ||
		text == "connection to client lost" || strings.HasPrefix(text, "could not send data to client") ||
		strings.HasPrefix(text, "could not receive data from client") || refusals.MatchString(text)
}

// refusals match what Postgres answers to clients while it starts, recovers or stops.
var refusals = regexp.MustCompile(`^the database system is (in recovery mode|not yet accepting connections|` +
	`starting up|shutting down)`)

// isFullDisk reports whether a program of Postgres says that the disk is full. Its messages are in the locale C.
func isFullDisk(text string) bool { return strings.Contains(text, "No space left on device") }

// fullDisk is the error of a Postgres that ended because its disk is full.
type fullDisk string

// Error implements error.
func (e fullDisk) Error() string { return string(e) }

// Unwrap returns ENOSPC, so that db.IsFull recognizes the error.
func (fullDisk) Unwrap() error { return syscall.ENOSPC }

// explain returns an error that says event and its cause: the line about a full disk, if there is one, else the
// server's last fatal line. The fatal line alone does not always name the full disk.
func (j *journal) explain(event string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.full != "":
		return fullDisk(fmt.Sprintf("%s, because the disk is full: make room there, and try again (%s)", event, j.full))
	case j.fatal == "":
		return errors.New(event)
	case strings.HasPrefix(j.fatal, "pre-existing shared memory block"):
		return fmt.Errorf("%s: %w (%s)", event, errMemoryInUse, j.fatal)
	}
	return fmt.Errorf("%s: %s", event, j.fatal)
}
