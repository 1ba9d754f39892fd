package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/recall"
)

// A conversation that nears its window has one job, however often messages are appended. The job compacts the
// conversation.
func TestACrowdedWindowIsCheckedByOneJob(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	workers := river.NewWorkers()
	s.Work(workers)
	jobs := queuetest.Jobs(t, pool, s.org, river.Config{Workers: workers, Queues: agent.Queues(), TestOnly: true,
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond})
	s.Jobs = jobs
	a := create(t, s, agent.New{Name: "a", System: "Be kind.", WindowLimit: new(8000)})
	grow := func(words int) recall.Conversation {
		t.Helper()
		say(t, s, a, said(recall.User, strings.Repeat("word ", words)), said(recall.Assistant, "Yes."))
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckWindowSoon(t.Context(), s.org, a, c); err != nil {
			t.Fatalf("queue a check: %v", err)
		}
		return c
	}
	queued := func() []string {
		t.Helper()
		list, err := db.All[string](t.Context(), pool, `
			SELECT kind || ' ' || queue || ' ' || (args ->> 'agent_id') FROM river_job
			WHERE (args ->> 'org')::integer = $1`, s.org)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if c := grow(2000); len(queued()) != 0 {
		t.Errorf("at %d tokens of 8000: got %v, want no job", c.Estimate(), queued())
	}
	for range 4 {
		grow(2000)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("attend_window attend_%d %s", s.org, a.ID)}, queued()); diff != "" {
		t.Errorf("the jobs (-want +got):\n%s", diff)
	}
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	defer unsubscribe()
	if err := jobs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := <-done; e.Kind != river.EventKindJobCompleted {
		t.Errorf("the job: %+v", e.Job.Errors)
	}
	if err := jobs.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{})
	if err != nil || len(list) != 1 {
		t.Errorf("got %d compactions (%v), want 1", len(list), err)
	}
}

// The checks of an organization with many crowded conversations do not delay the checks of another organization.
func TestWindowChecksOfOrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t) // a database of its own: all organizations in the queue take turns
	s := storeOf(t, pool, dbtest.NewOrg(t, pool))
	workers := river.NewWorkers()
	s.Work(workers)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Workers: workers, TestOnly: true,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs = jobs
	other := dbtest.NewOrg(t, pool)
	for _, org := range []db.Org{s.org, s.org, s.org, other, s.org, other} {
		a, err := s.Create(t.Context(), org, agent.New{Name: "a", System: "Be kind.", WindowLimit: new(8000)})
		if err != nil {
			t.Fatal(err)
		}
		long := []recall.Draft{said(recall.User, strings.Repeat("word ", 8000))}
		if _, err := s.Recall.Append(t.Context(), org, a.ID, "", long); err != nil {
			t.Fatal(err)
		}
		c, err := s.Recall.Conversation(t.Context(), org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckWindowSoon(t.Context(), org, a, c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.All[db.Org](t.Context(), pool, `
		SELECT (args ->> 'org')::integer FROM river_job ORDER BY priority, scheduled_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]db.Org{s.org, other, s.org, other, s.org, s.org}, got); diff != "" {
		t.Errorf("the organizations of the checks (-want +got):\n%s", diff)
	}
}

// A server without a model leaves a full window to one that has a model, and compacts it if there is none. A caller who
// waits has a summary at once, which says why no model wrote it.
func TestAServerWithoutAModelLeavesSummariesToOthers(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	others := true
	s.HasWriter = func(context.Context) (bool, error) { return others, nil }
	a := create(t, s, agent.New{Name: "a", System: "Be kind.", WindowLimit: new(8000)})
	for range 5 {
		say(t, s, a, said(recall.User, strings.Repeat("word ", 2000)), said(recall.Assistant, "Yes."))
	}
	check := func() error { return agent.CheckWindowLater(t.Context(), s.Store, s.org, a.ID) }
	compacted := func() int {
		t.Helper()
		n, err := db.One[int](t.Context(), pool, `SELECT count(*) FROM compactions WHERE org = $1`, s.org)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := check(); !errors.As(err, new(*river.JobSnoozeError)) || compacted() != 0 {
		t.Errorf("beside a server with a model: %v, %d compactions", err, compacted())
	}
	if err := agent.CheckIdleLater(t.Context(), s.Store, s.org, a.ID); !errors.As(err, new(*river.JobSnoozeError)) {
		t.Errorf("after a pause, beside a server with a model: %v", err)
	}
	others = false
	if err := check(); err != nil || compacted() != 1 {
		t.Errorf("alone: %v, %d compactions", err, compacted())
	}
	others = true
	b := create(t, s, agent.New{Name: "b", System: "Be kind.", WindowLimit: new(8000)})
	for range 5 {
		say(t, s, b, said(recall.User, strings.Repeat("word ", 2000)), said(recall.Assistant, "Yes."))
	}
	handOut(t, s, b, agent.OpenAI)
	why, err := db.One[string](t.Context(), pool, `
		SELECT k.why FROM compactions k WHERE k.org = $1 ORDER BY k.key DESC LIMIT 1`, s.org)
	if err != nil || why != "no model is configured on the server that made it" || compacted() != 2 {
		t.Errorf("before a prompt: %q, %v, %d compactions", why, err, compacted())
	}
}
