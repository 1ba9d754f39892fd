package main

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// outage notices that the database does not answer, and logs one line when that begins and one when it ends.
type outage struct {
	ping  func(context.Context) error // of the database
	every time.Duration               // between two looks for its end

	mu     sync.Mutex
	since  time.Time // zero while the database answers
	looked time.Time // when it was last asked
	wake   chan struct{}
}

const (
	pingTimeout = time.Second
	pingEvery   = time.Second
)

func newOutage(ping func(context.Context) error) *outage {
	return &outage{ping: ping, every: pingEvery, wake: make(chan struct{}, 1)}
}

// unreachable matches what libraries and Postgres say of a database that is away, stops or starts.
var unreachable = regexp.MustCompile("failed to connect to `|SQLSTATE (57P0|08)|" +
	"(?i)unexpected EOF|conn(ection)? (is )?closed|closed the connection|connection reset|broken pipe|" +
	"the database cannot be reached|the server's lock")

// explains reports whether an error with a text is explained by the database's being away. It asks the database itself,
// but at most every pingEvery, and logs to log when an outage begins.
func (o *outage) explains(ctx context.Context, log slog.Handler, text string) bool {
	if !unreachable.MatchString(text) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		return true
	}
	if time.Since(o.looked) < o.every {
		return false
	}
	o.looked = time.Now()
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	err := o.ping(asking)
	if err == nil {
		return false
	}
	o.since = o.looked
	line := slog.NewRecord(o.since, slog.LevelError,
		"the database does not answer; requests are refused, and work waits, until it does", 0)
	line.AddAttrs(slog.Any("error", err))
	_ = log.Handle(ctx, line)
	o.wake <- struct{}{}
	return true
}

// watch asks the database during outages, and logs when one ends, until ctx ends.
func (o *outage) watch(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for wait(ctx, o.every) {
			asking, cancel := context.WithTimeout(ctx, pingTimeout)
			err := o.ping(asking)
			cancel()
			if err == nil {
				log.Info("the database answers again", "seconds", int(o.end().Seconds()))
				break
			}
		}
	}
}

// end ends the outage, and returns how long it was.
func (o *outage) end() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	lasted := time.Since(o.since)
	o.since = time.Time{}
	return lasted
}

// duringOutages writes errors that an outage explains at level debug.
type duringOutages struct {
	slog.Handler
	outage *outage
}

// Handle implements slog.Handler.
func (d duringOutages) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return d.Handler.Handle(ctx, r)
	}
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.Value.String()
		return true
	})
	if d.outage.explains(ctx, d.Handler, text) {
		if !d.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d duringOutages) WithAttrs(attrs []slog.Attr) slog.Handler {
	return duringOutages{d.Handler.WithAttrs(attrs), d.outage}
}

// WithGroup implements slog.Handler.
func (d duringOutages) WithGroup(name string) slog.Handler {
	return duringOutages{d.Handler.WithGroup(name), d.outage}
}
