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

// logHandler returns a handler that writes in colour to a terminal, and in plain text elsewhere.
func logHandler(w io.Writer, level slog.Level) slog.Handler {
	if isTerminal(w) {
		return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly})
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
}

// quiet handles messages of River, the library of background jobs. It lowers all messages below error to debug, and
// rewrites errors in an operator's words.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, quieter(level))
}

// riverMessage is the key of River's original message.
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

// sparing logs each of River's errors at most once a minute, because River repeats an error many times a second. The
// repetitions are logged at level debug.
type sparing struct {
	slog.Handler
	*repeated
}

// repeated remembers when each error was last logged.
type repeated struct {
	mu   sync.Mutex
	last map[string]time.Time // by message
}

func newSparing(h slog.Handler) sparing { return sparing{h, &repeated{last: map[string]time.Time{}}} }

// Handle implements slog.Handler.
func (s sparing) Handle(ctx context.Context, r slog.Record) error {
	isRiver := false
	r.Attrs(func(a slog.Attr) bool {
		isRiver = isRiver || a.Key == riverMessage
		return !isRiver
	})
	if isRiver && r.Level >= slog.LevelError && s.isSaid(r) {
		if !s.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return s.Handler.Handle(ctx, r)
}

// isSaid reports whether the same message was logged within the last minute. If not, it notes that it is logged now.
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

// plainJobError explains an error of River for an operator. River begins a message with the name of one of its types.
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

// logger returns a logger that writes to s.err. format is text or json.
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
