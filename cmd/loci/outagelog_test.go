package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
)

// An outage of the database is one log line when it begins and one when it ends, whatever fails meanwhile. Other errors
// are logged unchanged, and so are lost connections while the database answers.
func TestAnOutageIsTwoLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, outageIsTwoLines)
}

func outageIsTwoLines(t *testing.T) {
	var away atomic.Bool
	o := newOutage(noAnswer(), func(context.Context) error {
		if away.Load() {
			return errors.New("nobody listens")
		}
		return nil
	})
	out := newLines()
	log := slog.New(duringOutages{slog.NewTextHandler(out, nil), newOutages(o)}).With("of", "jobs")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go o.watch(ctx, log)
	logLostConnection := func() {
		time.Sleep(2 * o.every) // so that the database is asked again
		log.Error("producer: error fetching jobs", "err", errors.New("failed to connect to `user=loci`: refused"))
	}
	logLostConnection()
	if !strings.Contains(out.String(), "error fetching jobs") {
		t.Errorf("a lost connection is not logged while the database answers:\n%s", out)
	}
	before := len(out.String())
	away.Store(true)
	for range 20 {
		logLostConnection()
	}
	log.Warn("the endpoint fails", "error", "connection refused")
	away.Store(false)
	time.Sleep(o.every) // so that it is asked whether the outage is over
	synctest.Wait()
	if !strings.Contains(out.String(), "the database answers again") {
		t.Errorf("the end of the outage is not logged:\n%s", out)
	}
	text := out.String()[before:]
	if n := strings.Count(text, "\n"); n != 3 || !strings.Contains(text, "the database does not answer") ||
		!strings.Contains(text, "nobody listens") || !strings.Contains(text, "the endpoint fails") {
		t.Errorf("%d lines of an outage:\n%s", n, text)
	}
	before = len(out.String())
	away.Store(true)
	logLostConnection()
	if !strings.Contains(out.String()[before:], "the database does not answer") {
		t.Errorf("the next outage is not logged:\n%s", out.String()[before:])
	}
}

// At level debug, failures during an outage are still logged.
func TestDebugLogsShowWhatAnOutageExplains(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := newOutage(noAnswer(), func(context.Context) error { return errors.New("away") })
	log := slog.New(duringOutages{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}), newOutages(o)})
	log.Error("first", "err", "unexpected EOF")
	log.WithGroup("g").Error("second", "err", "SQLSTATE 57P03")
	if text := out.String(); !strings.Contains(text, "level=DEBUG msg=first") ||
		!strings.Contains(text, "level=DEBUG msg=second") || strings.Count(text, "level=ERROR") != 1 {
		t.Errorf("got:\n%s", text)
	}
}

// A full disk is an outage, too. Refused changes are not logged separately, and neither are the database's other
// errors.
func TestAFullDiskIsTwoLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, fullDiskIsTwoLines)
}

func fullDiskIsTwoLines(t *testing.T) {
	var fails atomic.Pointer[pgconn.PgError]
	o := newOutage(noStoring(), func(context.Context) error {
		if err := fails.Load(); err != nil {
			return err
		}
		return nil
	})
	out := newLines()
	log := slog.New(duringOutages{slog.NewTextHandler(out, nil), newOutages(o)})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go o.watch(ctx, log)
	refused := &pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file"}
	fails.Store(&pgconn.PgError{Severity: "FATAL", Code: "57P03", Message: "starting"})
	log.Error("before", "error", refused)
	if text := out.String(); !strings.Contains(text, "before") || strings.Contains(text, "can store nothing") {
		t.Errorf("a database that starts is taken for one without room:\n%s", text)
	}
	time.Sleep(outageEchos * o.every) // so that the database is asked again
	before := len(out.String())
	fails.Store(refused)
	for range 20 {
		log.Error("request failed", "status", 503, "error", refused)
	}
	fails.Store(nil)
	time.Sleep(o.every) // so that it is asked whether the outage is over
	synctest.Wait()
	log.Error("request failed", "status", 503, "error", refused) // a request that began before
	if text := out.String()[before:]; strings.Count(text, "\n") != 2 ||
		!strings.Contains(text, "can store nothing; changes are refused with status 503") ||
		!strings.Contains(text, "stores changes again") {
		t.Errorf("the log of a full disk:\n%s", text)
	}
}

// A suspended database answers nothing. This explains all requests that exceed their deadlines, and all errors of the
// library of jobs. The log has one line per minute.
func TestASuspendedDatabaseIsALineAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, suspendedIsALineAMinute)
}

func suspendedIsALineAMinute(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	o := newOutage(noAnswer(), func(context.Context) error {
		if away.Load() {
			return context.DeadlineExceeded
		}
		return nil
	})
	out := newLines()
	handler := duringOutages{slog.NewTextHandler(out, nil), newOutages(o)}
	log, jobs := slog.New(handler), slog.New(quiet{handler})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go o.watch(ctx, log)
	for range 200 {
		log.Warn("tables are not analyzed", "error", context.DeadlineExceeded)
		jobs.Error("producer: Error fetching jobs", "err", "StandardPilot.JobGetAvailable timed out after 10s")
		jobs.Error("jobcompleter.BatchCompleter: Too many errors; giving up")
		time.Sleep(time.Second)
	}
	text := out.String()
	if n := strings.Count(text, "\n"); n != 4 || strings.Count(text, "still does not answer") != 3 {
		t.Errorf("%d lines in 200 seconds:\n%s", n, text)
	}
	away.Store(false)
	time.Sleep(2 * o.every)
	synctest.Wait()
	jobs.Error("jobcompleter.BatchCompleter: Too many errors; giving up")
	if !strings.Contains(out.String()[len(text):], "giving up") {
		t.Errorf("an error of jobs after the outage is not logged:\n%s", out)
	}
}

// A lock held by another session is an outage. Requests and maintenance exceed their deadlines.
func TestALockIsALineAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		locked.Store(true)
		o := newOutage(noLocks(), func(context.Context) error {
			if locked.Load() {
				return &pgconn.PgError{Severity: "ERROR", Code: "55P03"}
			}
			return nil
		})
		out := newLines()
		handler := duringOutages{slog.NewTextHandler(out, nil), newOutages(o)}
		log, jobs := slog.New(handler), slog.New(quiet{handler})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go o.watch(ctx, log)
		for range 100 {
			log.Error("request failed", "status", 503, "error", context.DeadlineExceeded)
			jobs.Error("producer: Error fetching jobs", "err", "StandardPilot.JobGetAvailable timed out after 10s")
			time.Sleep(time.Second)
		}
		locked.Store(false)
		time.Sleep(2 * o.every)
		synctest.Wait()
		text := out.String()
		if strings.Count(text, "\n") != 3 || !strings.Contains(text, "still locks") || !strings.Contains(text, "any more") {
			t.Errorf("the log of a lock:\n%s", text)
		}
	})
}

// Unconfirmed commits are an outage. All errors at one moment wait for a single answer of the database.
func TestErrorsOfOneMomentAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var confirmed atomic.Bool
		probe := func(ctx context.Context) error {
			if confirmed.Load() {
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", db.ErrUnconfirmed, ctx.Err())
		}
		commits, locks := newOutage(noCommits(), probe), newOutage(noLocks(), probe)
		out := newLines()
		log := slog.New(duringOutages{slog.NewTextHandler(out, nil), newOutages(commits, locks)})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go commits.watch(ctx, log)
		began := time.Now()
		var failed sync.WaitGroup
		for range 100 {
			failed.Go(func() { log.Error("request failed", "status", 503, "error", db.ErrUnconfirmed) })
		}
		failed.Wait()
		if took := time.Since(began); took > pingTimeout {
			t.Errorf("a hundred errors were logged after %s", took)
		}
		confirmed.Store(true)
		time.Sleep(2 * commits.every)
		synctest.Wait()
		text := out.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "does not confirm commits") ||
			!strings.Contains(text, "confirms commits again") || locks.isOn() {
			t.Errorf("the log of unconfirmed commits:\n%s", text)
		}
	})
}

// While a schema is rebuilt, errors about missing parts are not logged separately. Before and after, the database has
// everything that it should have, so a wrong statement is logged.
func TestARebuiltSchemaIsTwoLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing := &pgconn.PgError{Severity: "ERROR", Code: "42P01", Message: "relation does not exist"}
		var lacks atomic.Bool
		o := newOutage(noSchema(), func(context.Context) error {
			if lacks.Load() {
				return missing
			}
			return nil
		})
		out := newLines()
		log := slog.New(duringOutages{slog.NewTextHandler(out, nil), newOutages(o)})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go o.watch(ctx, log)
		wrong := func() bool {
			before := len(out.String())
			time.Sleep(outageEchos * o.every)
			log.Error("request failed", "status", 503, "error", missing)
			return strings.Contains(out.String()[before:], "request failed") &&
				strings.Contains(out.String()[before:], "SQLSTATE 42P01")
		}
		if !wrong() {
			t.Errorf("a wrong statement is not logged:\n%s", out)
		}
		time.Sleep(outageEchos * o.every)
		before := len(out.String())
		lacks.Store(true)
		for _, err := range []error{missing, &pgconn.PgError{Code: "XX000", Message: "cache lookup failed for type 1"}} {
			log.Error("request failed", "status", 503, "error", err)
		}
		lacks.Store(false)
		time.Sleep(2 * o.every)
		synctest.Wait()
		if text := out.String()[before:]; strings.Count(text, "\n") != 2 || !strings.Contains(text, "lacks a part of") ||
			!strings.Contains(text, "has this program's schema again") {
			t.Errorf("the log of a schema that is rebuilt:\n%s", text)
		}
		if !wrong() {
			t.Errorf("a wrong statement is not logged afterwards:\n%s", out)
		}
	})
}

// If a disk is completely full, Postgres stops. One reminder per minute names the worse outage.
func TestTwoOutagesRemindOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := &pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file"}
		noListener := errors.New("nobody listens")
		unreachable, storage := newOutage(noAnswer(), func(context.Context) error { return noListener }),
			newOutage(noStoring(), func(context.Context) error { return full })
		out := newLines()
		log := slog.New(duringOutages{slog.NewTextHandler(out, nil), newOutages(unreachable, storage)})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go unreachable.watch(ctx, log)
		go storage.watch(ctx, log, unreachable)
		log.Error("request failed", "error", full)
		log.Error("request failed", "error", "unexpected EOF")
		time.Sleep(200 * time.Second)
		synctest.Wait()
		text := out.String()
		if strings.Count(text, "still") != 3 || strings.Count(text, "still does not answer") != 3 {
			t.Errorf("the log of 200 seconds:\n%s", text)
		}
	})
}
