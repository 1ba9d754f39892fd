package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// under returns an agent with a window of 16,000 tokens and the given policy.
func under(t *testing.T, s fixture, policy string) agent.Agent {
	t.Helper()
	return create(t, s, agent.New{Name: "a", WindowLimit: new(16_000), Settings: agent.Settings{
		CompactionSettings: json.RawMessage(`{"policy":` + policy + `}`)}})
}

// read appends the messages of reading a file, with a long result, as often as times says.
func read(t *testing.T, s fixture, a agent.Agent, times int) {
	t.Helper()
	var messages []recall.Draft
	for i := range times {
		id := fmt.Sprint("call-", i)
		messages = append(messages, said(recall.User, fmt.Sprint("Read file ", i)),
			recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "read_file",
				Input: `{"path":"a.go"}`}}},
			recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id,
				Text: fmt.Sprint("file ", i, ": ") + strings.Repeat("what the file says\n", 120)}}},
			said(recall.Assistant, "I have read it."))
	}
	say(t, s, a, messages...)
}

// liner is a model that writes lines.
type liner struct{ asks atomic.Int64 }

func (m *liner) Complete(_ context.Context, r summary.Request) (summary.Reply, error) {
	m.asks.Add(1)
	return summary.Reply{Text: "read_file a.go: what the file says", Finish: "stop", PromptTokens: 700,
		OutputTokens: 9}, nil
}

const linesOnly = `{"steps":[{"step":"one_line","trigger_share":0.1,"stop_share":0,"oldest_share":1,
	"protect_newest":1}]}`

// The summarizing model writes, once, the lines that replace old results. The change records how often the model was
// asked.
func TestAModelWritesTheLinesOfAPolicy(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, linesOnly)
	read(t, s, a, 5)
	model := &liner{}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	prompt := string(handOut(t, s, a, agent.OpenAI).Request)
	if n := strings.Count(prompt, "[compacted: read_file a.go: what the file says"); n != 4 || model.asks.Load() != 4 {
		t.Errorf("%d lines of %d requests: %s", n, model.asks.Load(), prompt)
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 || list[0].ModelCalls != 4 || list[0].PromptTokens != 2800 ||
		list[0].OutputTokens != 36 {
		t.Errorf("the change: %+v, %v", list, err)
	}
	if again := string(handOut(t, s, a, agent.OpenAI).Request); again != prompt || model.asks.Load() != 4 {
		t.Errorf("the next prompt asked %d times in all", model.asks.Load())
	}
}

// broken is a model that fails.
type broken struct{ asks atomic.Int64 }

func (m *broken) Complete(context.Context, summary.Request) (summary.Reply, error) {
	m.asks.Add(1)
	return summary.Reply{}, outOfMemory{errors.New("at 10.0.0.7: out of memory")}
}

type outOfMemory struct{ error }

func (outOfMemory) Public() string { return "the model is out of memory" }

// A model is asked for few lines before a prompt, and the other results wait for the next one. A model that fails is
// asked once, rules write all lines, and the change says why.
func TestAModelIsAskedForFewLinesBeforeAPrompt(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, linesOnly)
	read(t, s, a, 12)
	model := &liner{}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	for _, want := range []int{8, 11, 11} {
		prompt := string(handOut(t, s, a, agent.OpenAI).Request)
		if n := strings.Count(prompt, "[compacted: read_file"); n != want || int(model.asks.Load()) != want {
			t.Errorf("%d lines of %d requests, want %d", n, model.asks.Load(), want)
		}
	}
	b := under(t, s, linesOnly)
	read(t, s, b, 12)
	fails := &broken{}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: fails} }
	prompt := string(handOut(t, s, b, agent.OpenAI).Request)
	if n := strings.Count(prompt, "[compacted without a model: read_file"); n != 11 || fails.asks.Load() != 1 {
		t.Errorf("%d lines without a model after %d requests", n, fails.asks.Load())
	}
	list, err := s.Compaction.Compactions(t.Context(), s.org, b.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 || list[0].Why == nil ||
		*list[0].Why != "rules wrote lines: the model is out of memory" {
		t.Errorf("the change: %+v, %v", list, err)
	}
}

func TestWithoutAModelTheLinesSaySo(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, linesOnly)
	read(t, s, a, 5)
	prompt := string(handOut(t, s, a, agent.OpenAI).Request)
	if n := strings.Count(prompt, "[compacted without a model: read_file"); n != 4 {
		t.Errorf("%d lines: %s", n, prompt)
	}
}

func TestACompactionNamesThePolicyThatPlannedIt(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{`"pi"`: "pi", `{"preset":"pi","steps":{"reserve":null}}`: "pi (changed)",
		`null`: ""} {
		s, _ := newStore(t)
		a := under(t, s, policy)
		read(t, s, a, 20)
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Compact(t.Context(), s.org, c, agent.CompactOptions{})
		if err != nil || r.Made == nil {
			t.Fatalf("%s: %+v, %v", policy, r, err)
		}
		if got := r.Made.Policy; (got == nil) != (want == "") || got != nil && *got != want {
			t.Errorf("%s: the compaction names %v, want %q", policy, got, want)
		}
	}
}

// While a sub-agent works for a conversation, it has no quiet point, so a compaction waits.
func TestACompactionWaitsForAnAgentThatWorks(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := under(t, s, `{"steps":[{"step":"fraction","window_share":0.3},{"step":"quiet_point"},{"step":"slide"}]}`)
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	child := create(t, s, agent.New{Name: "child"})
	childLog, err := s.Recall.Conversation(t.Context(), s.org, child.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(t.Context(), `
		INSERT INTO children (org, parent_key, parent_conversation, agent_key, conversation_key, mode, name, task, depth,
		                      runs, after_position)
		VALUES ($1, $2, $3, $4, $5, 'blank', 'child', 'work', 1, false, 0)`, s.org, c.AgentKey, c.Key,
		childLog.AgentKey, childLog.Key)
	if err != nil {
		t.Fatal(err)
	}
	read(t, s, a, 4)
	say(t, s, a, said(recall.User, strings.Repeat("and so it goes on ", 1500)), said(recall.Assistant, "Yes."))
	compacted := func() int {
		handOut(t, s, a, agent.OpenAI)
		list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := compacted(); n > 0 {
		t.Fatalf("%d compactions while an agent works", n)
	}
	if _, err := pool.Exec(t.Context(), `
		UPDATE children SET status = 'returned', returned_at = now() WHERE org = $1`, s.org); err != nil {
		t.Fatal(err)
	}
	if n := compacted(); n != 1 {
		t.Errorf("%d compactions after it has returned", n)
	}
}

// The statistics count, for each step, how often expand read something that the step hid. A call may name it by seq or
// by id, as a number or as a text.
func TestStatsCountWhatIsExpandedByStep(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := under(t, s, linesOnly)
	read(t, s, a, 5)
	handOut(t, s, a, agent.OpenAI)
	seq, err := db.One[int64](t.Context(), pool, `SELECT min(seq) FROM messages WHERE org = $1 AND role = 'tool'`, s.org)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{fmt.Sprintf(`%d`, seq), fmt.Sprintf(`"%d"`, seq), `"nothing"`} {
		say(t, s, a, recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall,
			CallID: fmt.Sprint("expand-", i), Name: "expand", Input: `{"id": ` + id + `}`}}})
	}
	stats, err := s.Stats(t.Context(), s.org, a.ID, 5)
	want := agent.ExpandedStep{Policy: "custom", Step: "one_line", Messages: 4, Expands: 2}
	if err != nil || len(stats.Steps) != 1 || stats.Steps[0] != want {
		t.Errorf("expanded by step: %+v, %v, want %+v", stats.Steps, err, want)
	}
	sum := 0.0
	for _, c := range stats.Total {
		sum += c.Share
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("the shares add up to %f", sum)
	}
}

// A background check that waited for the compaction of a prompt does not compact again, even though the view is still
// above the policy's trigger. Nor does a check that finds no new message.
func TestABackgroundCheckDoesNotCompactAgain(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, `{"steps":[{"step":"message_count","max_messages":3},
		{"step":"oldest_share","turns_share":0.3}]}`)
	read(t, s, a, 6)
	var wait sync.WaitGroup
	other, assembled := *s.Store, make(chan struct{}, 9)
	other.Tools = func(a agent.Agent, folder bool) []agent.Definition {
		assembled <- struct{}{}
		return oneTool(a, folder)
	}
	check := func() {
		if err := other.CheckWindow(t.Context(), s.org, a.ID, ""); err != nil && !errors.Is(err, db.ErrInvalid) {
			t.Error(err)
		}
	}
	model := &thinker{meanwhile: func() {
		wait.Go(check)
		<-assembled // the check has read the view before the compaction
	}}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: model} }
	p := handOut(t, s, a, agent.OpenAI)
	wait.Wait()
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	settled := func(tokens int) {
		t.Helper()
		usage := c.Usage
		usage.Settled = tokens
		if err := s.Recall.RecordUsage(t.Context(), s.org, c.Key, c.Version, usage); err != nil {
			t.Fatal(err)
		}
	}
	settled(10) // as if the view were larger than the compaction said
	check()
	settled(c.Settled)
	list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
	if err != nil || len(list) != 1 {
		t.Errorf("%d compactions, %v, want one", len(list), err)
	}
	if again := handOut(t, s, a, agent.OpenAI); !bytes.Equal(again.Request, p.Request) {
		t.Errorf("the next prompt differs:\n%s\n%s", p.Request, again.Request)
	}
}

// A policy must have only one cutter. A setting that adds a second one is refused when a conversation sets it over its
// agent's policy, and when an agent sets it over its organization's.
func TestASecondCutterIsRefusedWhereItIsSet(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, `"deck"`)
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	for change, refused := range map[string]bool{`{"older_turns":{}}`: true,
		`{"older_turns":{},"oldest_share":null}`: false} {
		change := json.RawMessage(`{"policy":{"steps":` + change + `}}`)
		_, err := s.UpdateConversation(t.Context(), s.org, c, agent.ConversationChange{Settings: change})
		if errors.Is(err, db.ErrInvalid) != refused ||
			refused && !strings.Contains(err.Error(), "oldest_share and older_turns") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// A file that is too long for the log is shown again after a compaction, up to the tokens that one may take.
func TestALongFileIsShownAgain(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(64_000), Settings: agent.Settings{CompactionSettings: []byte(
		`{"policy":{"steps":[{"step":"tokens","above_tokens":60000},{"step":"full"},{"step":"restore_files"}]}}`)}})
	var file strings.Builder
	for n := range 4_000 {
		fmt.Fprintf(&file, "line %d of the file\n", n)
	}
	say(t, s, a, said(recall.User, "Read it."), recall.Draft{Role: recall.Assistant, Content: []recall.Part{
		{Type: recall.ToolCall, CallID: "c", Name: "read_file", Input: `{"path":"a.go"}`}}},
		recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "c", Text: file.String()}}},
		said(recall.Assistant, "I have read it."), said(recall.User, "Thanks. "+strings.Repeat("It is long. ", 200)),
		said(recall.Assistant, "Yes. "+strings.Repeat("It is. ", 400)), said(recall.User, "Go on."))
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Compact(t.Context(), s.org, c, agent.CompactOptions{}); err != nil || r.Made == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	prompt := string(handOut(t, s, a, agent.OpenAI).Request)
	for line, shown := range map[string]bool{"line 0 of": true, "line 400 of": true, "line 3000 of": false} {
		if strings.Contains(prompt, line) != shown {
			t.Errorf("%q is shown: %t", line, !shown)
		}
	}
	if !strings.Contains(prompt, " bytes are shown.") {
		t.Error("the prompt does not say that it is a part")
	}
}
