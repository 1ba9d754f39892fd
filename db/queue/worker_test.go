package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

type work struct{}

func (work) Kind() string { return "work" }

// job returns a job at one of its three attempts.
func job(try int) *river.Job[work] {
	return &river.Job[work]{JobRow: &rivertype.JobRow{Attempt: try, MaxAttempts: 3,
		Errors: make([]rivertype.AttemptError, try-1)}}
}

// The error of a job's work decides whether the job is tried again. If the last attempt fails, the job's record says
// so.
func TestErrorsEndJobs(t *testing.T) {
	t.Parallel()
	fault := errors.New("a fault")
	const again, ends = "tried again", "ended"
	for _, c := range []struct {
		name     string
		err      error
		try      int
		recorded bool
		invalid  bool
		want     string
		fails    int // number of failed records
	}{
		{name: "work that is done", want: "done"},
		{name: "a fault", err: fault, want: again},
		{name: "what was deleted", err: fmt.Errorf("read: %w", db.ErrNotFound), want: ends},
		{name: "invalid work that may be valid later", err: db.Invalid("no"), want: again},
		{name: "invalid work that stays so", err: db.Invalid("no"), invalid: true, want: ends},
		{name: "a pause", err: river.JobSnooze(time.Hour), want: "snoozed"},
		{name: "the first of three tries", err: fault, recorded: true, want: again},
		{name: "the last try", err: fault, try: 3, recorded: true, want: again, fails: 1},
		{name: "the last try at what was deleted", err: db.ErrNotFound, try: 3, recorded: true, want: ends},
	} {
		fails := 0
		w := &queue.Worker[work]{EndInvalid: c.invalid, Do: func(context.Context, *river.Job[work]) error { return c.err }}
		if c.recorded {
			w.Fail = func(context.Context, work, string) error { fails++; return nil }
		}
		err := w.Work(t.Context(), job(max(c.try, 1)))
		got := "done"
		if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); cancelled {
			got = ends
		} else if _, snoozed := errors.AsType[*rivertype.JobSnoozeError](err); snoozed {
			got = "snoozed"
		} else if err != nil {
			got = again
		}
		if got != c.want || fails != c.fails {
			t.Errorf("%s: the job is %s (%v) and fails %d records; want %s, %d", c.name, got, err, fails, c.want, c.fails)
		}
	}
}

// A job waits for its worker's own pause if there is one, otherwise as River decides.
func TestAJobChoosesItsPause(t *testing.T) {
	t.Parallel()
	var failures int
	w := &queue.Worker[work]{Pause: func(n int) time.Duration { failures = n; return time.Hour }}
	if before := time.Now(); w.NextRetry(job(2)).Before(before.Add(time.Hour)) || failures != 2 {
		t.Errorf("the second failure waits until %v, as failure %d", w.NextRetry(job(2)), failures)
	}
	if next := (&queue.Worker[work]{}).NextRetry(job(2)); !next.IsZero() {
		t.Errorf("without a pause of its own it waits until %v", next)
	}
}

// If the last attempt runs out of time or is interrupted, its record still becomes failed, and is not left running for
// ever.
func TestARecordOutlivesTheTimeOfItsJob(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	w := &queue.Worker[work]{Do: func(ctx context.Context, _ *river.Job[work]) error { end(); return ctx.Err() }}
	failed := false
	w.Fail = func(ctx context.Context, _ work, _ string) error { failed = ctx.Err() == nil; return ctx.Err() }
	if err := w.Work(ended, job(3)); !errors.Is(err, context.Canceled) || !failed {
		t.Errorf("the record is failed: %v (%v)", failed, err)
	}
}
