package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
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

// quiet drops the messages below error of the library of background jobs unless debug messages are logged, and says its
// errors in an operator's words.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, quieter(level))
}

// riverMessage is the key of what River itself says.
const riverMessage = "river"

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	if r.Level < slog.LevelError {
		return q.Handler.Handle(ctx, r)
	}
	line := slog.NewRecord(r.Time, r.Level, plainJobError(r.Message), r.PC)
	line.AddAttrs(slog.String(riverMessage, r.Message))
	r.Attrs(func(a slog.Attr) bool {
		line.AddAttrs(a)
		return true
	})
	return q.Handler.Handle(ctx, line)
}

// sparing writes an error of the library of background jobs at most once a minute, because the library repeats one many
// times a second. What it leaves out is at level debug.
type sparing struct {
	slog.Handler
	*repeated
}

// repeated is when which errors were written.
type repeated struct {
	mu   sync.Mutex
	last map[string]time.Time // by what they say
}

func newSparing(h slog.Handler) sparing { return sparing{h, &repeated{last: map[string]time.Time{}}} }

// Handle implements slog.Handler.
func (s sparing) Handle(ctx context.Context, r slog.Record) error {
	ofLibrary := false
	r.Attrs(func(a slog.Attr) bool {
		ofLibrary = ofLibrary || a.Key == riverMessage
		return !ofLibrary
	})
	if ofLibrary && r.Level >= slog.LevelError && s.isSaid(r) {
		if !s.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return s.Handler.Handle(ctx, r)
}

// isSaid reports whether the same was said within the last minute, and else notes that it is said.
func (s sparing) isSaid(r slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Time.Sub(s.last[r.Message]) < time.Minute {
		return true
	}
	s.last[r.Message] = r.Time
	return false
}

// WithAttrs implements slog.Handler.
func (s sparing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparing{s.Handler.WithAttrs(attrs), s.repeated}
}

// WithGroup implements slog.Handler.
func (s sparing) WithGroup(name string) slog.Handler {
	return sparing{s.Handler.WithGroup(name), s.repeated}
}

// plainJobError returns what an error of River, the library of background jobs, means for the server. River begins a
// message with the name of one of its types.
func plainJobError(message string) string {
	part, _, _ := strings.Cut(message, ":")
	switch {
	case strings.HasSuffix(message, "Too many errors; giving up"):
		return "background jobs have ended, but that could not be stored; they are repeated later"
	case strings.HasSuffix(part, "Completer"), strings.Contains(message, "completer"):
		return "background jobs have ended, but that could not be stored yet; it is tried again"
	case part == "JobExecutor":
		return "the end of a background job could not be stored, or its code failed; it is repeated later"
	case part == "Elector":
		return "the servers could not agree on the one that does the upkeep of background jobs; it is tried again"
	case part == "Notifier":
		return "the server is not told of new background jobs, and looks for them instead; it is tried again"
	}
	return "the upkeep of background jobs had an error; it is tried again"
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

// logger returns a logger that writes to s.err from a level on, in a format: text or json.
func logger(s streams, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, settingError{fmt.Errorf("LOCI_LOG_LEVEL is '%s'; it must be debug, info, warn or error", level)}
	}
	switch format {
	case "text":
		return slog.New(logHandler(rawTerminal(s.err), l)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: l})), nil
	}
	return nil, settingError{fmt.Errorf("LOCI_LOG_FORMAT is '%s'; it must be text or json", format)}
}
