package main

import (
	"context"
	"io"
	"log/slog"
	"os"
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

// quiet drops a library's messages below error unless debug messages are logged.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, quieter(level))
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return q.Handler.Handle(ctx, r)
}

func quieter(level slog.Level) slog.Level {
	if level < slog.LevelError {
		return slog.LevelDebug
	}
	return level
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
