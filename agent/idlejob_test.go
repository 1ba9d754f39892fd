package agent_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
)

const compactsWhenIdle = `{"steps":[{"step":"idle","after":"1h","above_tokens":2000},
	{"step":"keep_recent","keep_recent_tokens":1000}]}`

// A policy that compacts after a pause queues one check for a conversation. The check compacts once the pause is long
// enough. It keeps waiting if a prompt was handed out meanwhile.
func TestAnIdleConversationIsCompacted(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	workers := river.NewWorkers()
	s.Work(workers)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Workers: workers, TestOnly: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs = jobs
	var triggers []string
	s.Compaction.Made = func(_ context.Context, c store.Compaction) { triggers = append(triggers, c.Trigger) }
	a := under(t, s, compactsWhenIdle)
	read(t, s, a, 8)
	handOut(t, s, a, agent.OpenAI)
	read(t, s, a, 1)
	handOut(t, s, a, agent.OpenAI)
	starts, err := db.All[time.Time](t.Context(), pool, `
		SELECT scheduled_at FROM river_job WHERE kind = 'check_idle' AND (args ->> 'org')::integer = $1`, s.org)
	if err != nil || len(starts) != 1 || time.Until(starts[0]) < 50*time.Minute {
		t.Fatalf("the checks start at %v, %v", starts, err)
	}
	compacted := func(later time.Duration) (wait time.Duration, n int) {
		t.Helper()
		s.Now = func() time.Time { return time.Now().Add(later) }
		if wait, err = s.CheckIdle(t.Context(), s.org, a.ID, ""); err != nil {
			t.Fatal(err)
		}
		list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		return wait, len(list)
	}
	if wait, n := compacted(20 * time.Minute); n != 0 || wait < 30*time.Minute || wait > 40*time.Minute {
		t.Errorf("after 20 minutes: %d compactions, waits for %s", n, wait)
	}
	if wait, n := compacted(2 * time.Hour); n != 1 || wait != 0 {
		t.Errorf("after two hours: %d compactions, waits for %s", n, wait)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || list[0].Trigger != "idle" || len(triggers) != 1 || triggers[0] != "idle" {
		t.Errorf("the compaction's trigger is %q, and %v is counted, %v", list[0].Trigger, triggers, err)
	}
	if wait, n := compacted(3 * time.Hour); n != 1 || wait != 0 {
		t.Errorf("after three hours: %d compactions, waits for %s", n, wait)
	}
}

// Under a policy without a pause trigger no check is queued, and a check compacts nothing.
func TestNoCheckWithoutAPause(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	workers := river.NewWorkers()
	s.Work(workers)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Workers: workers, TestOnly: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs = jobs
	a := under(t, s, `"pi"`)
	read(t, s, a, 8)
	handOut(t, s, a, agent.OpenAI)
	n, err := db.One[int](t.Context(), pool, `
		SELECT count(*) FROM river_job WHERE kind = 'check_idle' AND (args ->> 'org')::integer = $1`, s.org)
	if err != nil || n != 0 {
		t.Errorf("%d checks, %v", n, err)
	}
	s.Now = func() time.Time { return time.Now().Add(99 * time.Hour) }
	if wait, err := s.CheckIdle(t.Context(), s.org, a.ID, ""); err != nil || wait != 0 {
		t.Errorf("waits for %s, %v", wait, err)
	}
}

// If a check after a pause finds that another trigger is due, the compaction names that trigger.
func TestAPauseIsNotBlamedForAnotherTrigger(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, `{"steps":[{"step":"idle","after":"1h","above_tokens":2000},
		{"step":"message_count","max_messages":20},
		{"step":"keep_recent","keep_recent_tokens":1000}]}`)
	read(t, s, a, 3)
	handOut(t, s, a, agent.OpenAI)
	read(t, s, a, 6)
	s.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := s.CheckIdle(t.Context(), s.org, a.ID, ""); err != nil {
		t.Fatal(err)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 || list[0].Trigger != store.Threshold {
		t.Errorf("%+v, %v", list, err)
	}
}
