package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// proposer is a model that gives one answer, or hangs until its context ends.
type proposer struct {
	answer string
	hangs  bool
}

// Complete implements summary.Summarizer.
func (m *proposer) Complete(ctx context.Context, _ summary.Request) (summary.Reply, error) {
	if m.hangs {
		<-ctx.Done()
		return summary.Reply{}, ctx.Err()
	}
	return summary.Reply{Text: m.answer}, nil
}

func automatic(t *testing.T) (fixture, agent.Agent) {
	t.Helper()
	s, _ := newStore(t)
	return s, create(t, s, agent.New{Name: "a", Settings: agent.Settings{WorkingMemory: agent.AutomaticMemory}})
}

// takenUp returns the record after the job has worked the last turn into it.
func takenUp(t *testing.T, s fixture, a agent.Agent) working.Memory {
	t.Helper()
	if err := s.TakeUpTurn(t.Context(), s.org, a.ID, recall.DefaultConversation); err != nil {
		t.Fatal(err)
	}
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Working.Memory(t.Context(), s.org, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// edits returns a turn in which the model edits a file.
func edits(id, path, old, after string) []recall.Draft {
	return []recall.Draft{said(recall.User, "Change\n"+path+"."),
		{Role: recall.Assistant, Content: []recall.Part{call(id, "edit",
			`{"file_path":"`+path+`","old_string":"`+old+`","new_string":"`+after+`"}`)}},
		{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id, Text: "done"}}}}
}

// Without a model, the record gets what can be read from the turn, once the turn has ended. Each turn is worked in
// once.
func TestATurnIsTakenUpWithoutAModel(t *testing.T) {
	t.Parallel()
	s, a := automatic(t)
	say(t, s, a, edits("1", "src/a.go", "x := 1", "x := 2")...)
	if m := takenUp(t, s, a); m.Version != 0 {
		t.Errorf("version %d before the turn has ended: %s", m.Version, m.Text)
	}
	say(t, s, a, said(recall.Assistant, "Done."))
	m := takenUp(t, s, a)
	if m.Version != 1 || taskOf(m.Record) != "Change src/a.go." || len(m.ImportantFiles) != 1 ||
		m.ImportantFiles[0].Text != "src/a.go" || m.LastEdit == nil ||
		m.LastEdit.Text != "--- src/a.go\n-x := 1\n+x := 2" {
		t.Errorf("got version %d: %s", m.Version, m.Text)
	}
	if m = takenUp(t, s, a); m.Version != 1 {
		t.Errorf("taken up twice: version %d", m.Version)
	}
	for i := range 9 {
		id := strings.Repeat("i", i+2)
		say(t, s, a, edits(id, "src/"+id+".go", "a", strings.Repeat("long ", 900))...)
		say(t, s, a, said(recall.Assistant, "Done."))
		m = takenUp(t, s, a)
	}
	if n := len(m.ImportantFiles); n != working.MaxImportant || m.ImportantFiles[n-1].Text != "src/"+
		strings.Repeat("i", 10)+".go" || m.Tokens > working.MaxTokens || taskOf(m.Record) != "Change src/a.go." {
		t.Errorf("after nine more turns: %d files, %d tokens: %s", n, m.Tokens, m.Text)
	}
	manual := create(t, s, agent.New{Name: "b"})
	say(t, s, manual, edits("1", "src/a.go", "x", "y")...)
	say(t, s, manual, said(recall.Assistant, "Done."))
	if m := takenUp(t, s, manual); m.Version != 0 {
		t.Errorf("an agent that did not ask for it: %s", m.Text)
	}
}

// A model's proposals are accepted as far as they break no rule. Files and the last edit are read from the log. An
// answer in a wrong form changes nothing.
func TestATurnIsTakenUpByTheModel(t *testing.T) {
	t.Parallel()
	s, a := automatic(t)
	model := &proposer{answer: "Here it is: ```json\n" + `{"changes": [{"field": "task", "text": "Count from two"},
		{"field": "decisions", "text": "two\nlines"}, {"field": "next", "text": "Run the tests"},
		{"field": "important_files", "text": "made/up.go"}, {"field": "plan", "text": "x"}]}` + "\n```"}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	say(t, s, a, edits("1", "src/a.go", "x := 1", "x := 2")...)
	say(t, s, a, said(recall.Assistant, "Done."))
	m := takenUp(t, s, a)
	if m.Next == nil || m.Next.Text != "Run the tests" || len(m.Decisions) != 0 || len(m.ImportantFiles) != 1 ||
		m.ImportantFiles[0].Text != "src/a.go" || taskOf(m.Record) != "Count from two" {
		t.Errorf("got %s", m.Text)
	}
	model.answer = "I cannot do that."
	say(t, s, a, edits("2", "src/b.go", "x := 1", "x := 2")...)
	say(t, s, a, said(recall.Assistant, "Done."))
	if m = takenUp(t, s, a); len(m.ImportantFiles) != 2 || m.Next.Text != "Run the tests" {
		t.Errorf("after an answer that is none: %s", m.Text)
	}
}

// Appended messages queue one job, which works even while the model of another agent hangs. Nothing else waits for the
// hanging job.
func TestAHangingModelHoldsUpItsJobOnly(t *testing.T) {
	t.Parallel()
	s, a := automatic(t)
	workers := river.NewWorkers()
	s.Work(workers)
	jobs := queuetest.Jobs(t, s.DB.(*pgxpool.Pool), s.org, river.Config{Workers: workers,
		Queues: agent.Queues(), TestOnly: true,
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 100 * time.Millisecond})
	s.Jobs = jobs
	hung := make(chan struct{}, 1)
	s.Compaction.Models = func(context.Context, string) *summary.Model {
		select {
		case hung <- struct{}{}:
			return &summary.Model{Summarizer: &proposer{hangs: true}}
		default:
			return &summary.Model{Summarizer: &proposer{answer: `{"changes": []}`}}
		}
	}
	done, unsubscribe := jobs.Subscribe(river.EventKindJobCompleted)
	defer unsubscribe()
	if err := jobs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-jobs.Stopped() })
	turn := func(a agent.Agent) {
		t.Helper()
		say(t, s, a, edits("1", "src/a.go", "x", "y")...)
		say(t, s, a, said(recall.Assistant, "Done."))
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.AfterAppend(t.Context(), s.org, a, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	turn(a)
	embedtest.Eventually(t, "the model is asked", func() bool { return len(hung) > 0 })
	other := create(t, s, agent.New{Name: "b", Settings: agent.Settings{WorkingMemory: agent.AutomaticMemory}})
	turn(other)
	<-done
	c, err := s.Recall.Conversation(t.Context(), s.org, other.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := s.Working.Memory(t.Context(), s.org, c); err != nil || len(m.ImportantFiles) != 1 {
		t.Errorf("the other agent's turn: %s, %v", m.Text, err)
	}
	handOut(t, s, a, agent.OpenAI) // waits for no job
}

// Messages that arrive while a job works on earlier messages get their own job, because the running job may not have
// seen them.
func TestMessagesDuringAJobAreTakenUp(t *testing.T) {
	t.Parallel()
	s, a := automatic(t)
	jobs, err := river.NewClient(riverpgxv5.New(s.DB.(*pgxpool.Pool)), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Jobs = jobs
	for n, m := range [][]recall.Draft{edits("1", "src/a.go", "x", "y"), {said(recall.Assistant, "Done.")}} {
		say(t, s, a, m...)
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AfterAppend(t.Context(), s.org, a, c); err != nil {
			t.Fatal(err)
		}
		waiting, err := db.One[int](t.Context(), s.DB, `
			SELECT count(*) FROM river_job
			WHERE kind = 'take_up_turn' AND state = 'available' AND (args ->> 'org')::integer = $1`, s.org)
		if err != nil || waiting != 1 {
			t.Errorf("after %d appends %d jobs wait: %v", n+1, waiting, err)
		}
		if _, err := s.DB.Exec(t.Context(), `
			UPDATE river_job SET state = 'running'
			WHERE kind = 'take_up_turn' AND (args ->> 'org')::integer = $1`, s.org); err != nil {
			t.Fatal(err)
		}
	}
}
