package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmittmann/tint"
)

// logHandler returns a handler that writes in colour to a terminal, and plain text elsewhere.
func logHandler(w io.Writer, level slog.Level) slog.Handler {
	if isTerminal(w) {
		return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly})
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quiet drops a library's messages below warn unless debug messages are logged. Of those about a read-only database,
// which come each second, it logs the first.
type quiet struct {
	slog.Handler
	readOnly *atomic.Int64 // when the last message about it came, in Unix seconds
}

// readOnlyFor is how long after such a message the next one counts as a repetition, in seconds.
const readOnlyFor = 60

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn {
		level = slog.LevelDebug
	}
	return q.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	about := strings.Contains(r.Message, readOnlyCode)
	r.Attrs(func(a slog.Attr) bool {
		about = about || strings.Contains(a.Value.String(), readOnlyCode)
		return !about
	})
	now := r.Time.Unix()
	if about && now-q.readOnly.Swap(now) < readOnlyFor {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// readOnlyCode is in the text of Postgres' error for a change in a read-only transaction.
const readOnlyCode = "SQLSTATE 25006"

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.readOnly}
}

func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.readOnly}
}
