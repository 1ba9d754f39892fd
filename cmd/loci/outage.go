package main

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// outage notices that the database fails in one way, and logs a line when that begins and a line when it ends.
type outage struct {
	outageKind
	ping  func(context.Context) error // returns an error while the outage lasts
	every time.Duration               // how often to check for the end

	mu     sync.Mutex
	since  time.Time     // zero while there is no outage
	ended  time.Time     // when the last outage ended
	looked time.Time     // when the database was last asked
	asked  chan struct{} // closed when the running check has its answer; nil if none runs
	wake   chan struct{}
}

// outageKind describes a kind of outage.
type outageKind struct {
	signs      *regexp.Regexp   // matches errors of libraries and Postgres during such an outage
	upkeep     bool             // the outage also stops River's upkeep, which then fails in many ways
	is         func(error) bool // whether an error of ping means that the outage begins; nil means every error does
	begun, end string           // lines logged at the begin and at the end
	lasts      string           // line logged every minute in between
}

const (
	pingTimeout = time.Second
	pingEvery   = time.Second
	remindEvery = time.Minute
	looksEvery  = 10 // how often per pingEvery the database is asked at most whether an outage begins
	outageEchos = 15 // times pingEvery in which an outage's errors may come after it (presenceEvery is the longest pause)
)

func newOutage(kind outageKind, ping func(context.Context) error) *outage {
	return &outage{outageKind: kind, ping: ping, every: pingEvery, wake: make(chan struct{}, 1)}
}

// noAnswer is the outage of a database that is away, stopping or starting.
func noAnswer() outageKind {
	return outageKind{
		signs: regexp.MustCompile("failed to connect to `|SQLSTATE (57P0|08)|" +
			"(?i)unexpected EOF|conn(ection)? (is )?closed|closed the connection|connection reset|broken pipe|" +
			"the database cannot be reached|the server's lock|ended by itself|is restarted|context deadline exceeded|" +
			"timed out|i/o timeout"),
		upkeep: true,
		lasts:  "the database still does not answer",
		begun:  "the database does not answer; requests are refused, and work waits, until it does",
		end:    "the database answers again",
	}
}

// noFiles is the outage of a database with files that were replaced while it runs. Such a database can begin no
// session.
func noFiles() outageKind {
	return outageKind{
		signs:  regexp.MustCompile("SQLSTATE 58P01"),
		is:     db.FilesChanged,
		upkeep: true,
		begun:  "the database cannot use its own files; requests are refused, and work waits, until it is restarted",
		lasts:  "the database still cannot use its own files: restart Postgres",
		end:    "the database uses its files again",
	}
}

// noStoring is the outage of a database that cannot store anything: its disk is full or broken, or it is read-only.
func noStoring() outageKind {
	return outageKind{
		signs: regexp.MustCompile("SQLSTATE (53000|53100|58030|25006)|(?i)no space left on device|" +
			"the database is read-only"),
		is:     db.IsFull,
		upkeep: true,
		begun: "the database can store nothing; changes are refused with status 503, and work waits, until its disk has " +
			"room and it is writable",
		lasts: "the database can still store nothing",
		end:   "the database stores changes again",
	}
}

// noCommits is the outage of a database that does not confirm commits.
func noCommits() outageKind {
	return outageKind{
		signs: regexp.MustCompile("did not confirm a change|its standby does not answer|context deadline exceeded|" +
			"timed out"),
		is:     func(err error) bool { return errors.Is(err, db.ErrUnconfirmed) },
		upkeep: true,
		begun: "the database does not confirm commits: a standby that synchronous_standby_names names is away; changes are " +
			"refused with status 503, and may be stored all the same, until it is back",
		lasts: "the database still does not confirm commits: a standby that synchronous_standby_names names is away",
		end:   "the database confirms commits again",
	}
}

// noSchema is the outage of a database that lacks a part of Loci's schema.
func noSchema() outageKind {
	return outageKind{
		signs: regexp.MustCompile("SQLSTATE (42|3F000|55000|0A000|XX000)|lacks a part of Loci's schema|" +
			"the database has "),
		is:     db.LacksSchema,
		upkeep: true,
		begun: "the database lacks a part of Loci's schema, or has that of another version, as while a backup is " +
			"restored; requests are refused, and work waits, until it is this program's",
		lasts: "the database still lacks a part of Loci's schema, or has that of another version",
		end:   "the database has this program's schema again",
	}
}

// noLocks is the outage of a database in which another session locks a table, so that no message can be stored.
func noLocks() outageKind {
	return outageKind{
		signs:  regexp.MustCompile("SQLSTATE 55P03|context deadline exceeded|timed out"),
		is:     db.IsLocked,
		upkeep: true,
		begun: "another session of the database locks a table, so that no message can be stored; requests are refused, and " +
			"work waits, until it ends: 'loci doctor' names it",
		lasts: "another session of the database still locks a table",
		end:   "no other session of the database locks a table any more",
	}
}

// outages returns the outages to watch for, the worst first. parts are the parts of the schema at the start.
func (o opened) outages(pool *pgxpool.Pool, parts db.Parts) *[]*outage {
	probe := o.probe(pool, parts)
	return &[]*outage{newOutage(noAnswer(), o.ping(pool)), newOutage(noFiles(), probe),
		newOutage(noStoring(), func(ctx context.Context) error { return db.CheckRoom(ctx, pool) }),
		newOutage(noSchema(), probe), newOutage(noCommits(), probe), newOutage(noLocks(), probe)}
}

// explains reports whether the outage explains an error with this text. upkeep says that the error comes from River.
// explains asks the database itself, though rarely, and logs to log when an outage begins. Errors that come at the same
// time wait for the same answer.
func (o *outage) explains(ctx context.Context, log slog.Handler, text string, upkeep bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if upkeep && o.upkeep && !o.since.IsZero() {
		return true
	}
	if !o.signs.MatchString(text) {
		return false
	}
	switch answer := o.asked; {
	case !o.since.IsZero():
	case answer != nil:
		o.mu.Unlock()
		<-answer
		o.mu.Lock()
	case time.Since(o.looked) >= o.every/looksEvery:
		o.ask(ctx, log)
	}
	return !o.since.IsZero() || time.Since(o.ended) < outageEchos*o.every
}

// ask asks the database whether an outage has begun. It releases mu while it waits.
func (o *outage) ask(ctx context.Context, log slog.Handler) {
	start, answer := time.Now(), make(chan struct{})
	o.looked, o.asked = start, answer
	o.mu.Unlock()
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	err := o.ping(asking)
	cancel()
	begins := err != nil && (o.is == nil || o.is(err))
	if begins {
		line := slog.NewRecord(start, slog.LevelError, o.begun, 0)
		line.AddAttrs(slog.Any("error", err))
		_ = log.Handle(ctx, line)
	}
	o.mu.Lock()
	o.asked = nil
	close(answer)
	if begins {
		o.since = start
		o.wake <- struct{}{}
	}
}

// watch checks the database during outages, and logs when one ends, until ctx ends. It gives no reminders while one of
// the worse outages lasts.
func (o *outage) watch(ctx context.Context, log *slog.Logger, worse ...*outage) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		start, reminded := time.Now(), time.Now()
		for db.Pause(ctx, o.every) {
			if time.Since(reminded) >= remindEvery && !slices.ContainsFunc(worse, (*outage).isOn) {
				reminded = time.Now()
				log.Warn(o.lasts, "seconds", int(time.Since(start).Seconds()))
			}
			asking, cancel := context.WithTimeout(ctx, pingTimeout)
			err := o.ping(asking)
			cancel()
			if err == nil {
				log.Info(o.end, "seconds", int(o.over().Seconds()))
				break
			}
		}
	}
}

// isOn reports whether the outage is under way.
func (o *outage) isOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// over ends the outage, and returns how long it lasted.
func (o *outage) over() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = time.Now()
	lasted := o.ended.Sub(o.since)
	o.since = time.Time{}
	return lasted
}

// outages are the outages that a log handler knows; none until the database is open.
type outages struct{ atomic.Pointer[[]*outage] }

// newOutages returns outages that are known from the beginning.
func newOutages(all ...*outage) *outages {
	o := &outages{}
	o.Store(&all)
	return o
}

// list returns the outages.
func (o *outages) list() []*outage {
	if all := o.Load(); all != nil {
		return *all
	}
	return nil
}

// duringOutages logs errors at level debug if an outage explains them.
type duringOutages struct {
	slog.Handler
	outages *outages
}

// Handle implements slog.Handler.
func (d duringOutages) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return d.Handler.Handle(ctx, r)
	}
	text, upkeep := r.Message, false
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.Value.String()
		upkeep = upkeep || a.Key == riverMessage
		return true
	})
	if slices.ContainsFunc(d.outages.list(), func(o *outage) bool { return o.explains(ctx, d.Handler, text, upkeep) }) {
		if !d.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d duringOutages) WithAttrs(attrs []slog.Attr) slog.Handler {
	return duringOutages{d.Handler.WithAttrs(attrs), d.outages}
}

// WithGroup implements slog.Handler.
func (d duringOutages) WithGroup(name string) slog.Handler {
	return duringOutages{d.Handler.WithGroup(name), d.outages}
}
