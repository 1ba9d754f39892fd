package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// oneTool is a set with one tool.
func oneTool(agent.Agent, bool) []agent.Definition {
	return []agent.Definition{{Name: "look", Schema: []byte(`{"name":"look","description":"Look at ` +
		`<it>.","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}`)}}
}

func say(t *testing.T, s fixture, a agent.Agent, messages ...recall.Draft) {
	t.Helper()
	if _, err := s.Recall.Append(t.Context(), s.org, a.ID, recall.DefaultConversation, messages); err != nil {
		t.Fatal(err)
	}
}

func said(role recall.Role, text string) recall.Draft {
	return recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}
}

func handOut(t *testing.T, s fixture, a agent.Agent, f agent.Format) agent.StoredPrompt {
	t.Helper()
	h, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: f})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func call(id, name, input string) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: name, Input: input}
}

func returned(parts ...recall.Part) recall.Draft {
	for i := range parts {
		parts[i].Type = recall.ToolReturn
	}
	return recall.Draft{Role: recall.Tool, Content: parts}
}

const pixel = `{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo=","detail":"low"}`

// conversation returns messages with one part of every kind that a log can have.
func conversation() []recall.Draft {
	return []recall.Draft{
		said(recall.Assistant, "Hello, I begin."),
		{Role: recall.User, Name: new("Ada Lovelace"), Content: []recall.Part{{Type: recall.Text, Text: "What is <this>?"},
			{Type: recall.Image, Source: []byte(pixel)}}},
		{Role: recall.Assistant, Model: new("claude-sonnet-4"), Content: []recall.Part{
			{Type: recall.Reasoning, Text: "I should look.", Signature: "sig-1"},
			{Type: recall.RedactedReasoning, Data: "secret"},
			{Type: recall.Text, Text: "I look twice."}, call("c1", "look", `{"at": "it"}`), call("c2", "look", ``)}},
		said(recall.System, "The light is on."),
		returned(recall.Part{CallID: "c2", Text: "", Images: []json.RawMessage{[]byte(pixel)}}),
		returned(recall.Part{CallID: "c1", Text: "A lamp.", IsError: true}),
		returned(recall.Part{CallID: "nobody's", Text: "An orphan."}),
		{Role: recall.Assistant, Model: new("deepseek-r1"), Content: []recall.Part{{Type: recall.Reasoning, Text: "Unsigned.",
			Signature: "of another"}, {Type: recall.Text, Text: "  \n"}}},
		{Role: recall.Assistant, Content: []recall.Part{call("c1", "look", `not json`),
			call("function:look at", "look at", `[1]`)}},
		said(recall.User, "Never mind."),
		said(recall.User, "Look at https://example.com/a.png"),
		{Role: recall.User, Content: []recall.Part{{Type: recall.Image, Source: []byte(`{"type":"url",` +
			`"url":"https://example.com/a.png"}`)}, {Type: recall.Image, Source: []byte(`{"type":"file"}`)}}},
		{Role: recall.Assistant, Content: []recall.Part{call("c3", "look", `{"at":"a"}`), call("c4", "look", `{"at":"b"}`)}},
		returned(recall.Part{CallID: "c3", Text: "A"}),
	}
}

// The golden files show the requests in each provider's format.
func TestRequests(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", System: "Begin.", Model: new("anthropic/claude-sonnet-4"),
		Messages: conversation(),
		Blocks:   []block.New{{Label: "persona", Value: "Calm & \"kind\".", Description: new("Who you are")}},
		Settings: agent.Settings{ToolRules: []byte(`[{"type":"exit_loop","tool_name":"look"},` +
			`{"type":"constrain_child_tools","tool_name":"look","children":["a","<b>"]},{"type":"run_first",` +
			`"tool_name":"look"},7]`)}})
	for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic} {
		h := handOut(t, s, a, f)
		var shown bytes.Buffer
		if err := json.Indent(&shown, h.Request, "", "  "); err != nil {
			t.Fatalf("%s is not JSON: %v\n%s", f, err, h.Request)
		}
		got := strings.ReplaceAll(shown.String(), a.ID, "agent-#")
		got = strings.ReplaceAll(got, a.UpdatedAt.UTC().Format(recall.EnvelopeTime), "TIME") + "\n"
		golden.Check(t, "testdata/"+string(f)+".golden", got)
	}
	if h := handOut(t, s, a, ""); h.Format != agent.Anthropic {
		t.Errorf("without a format: got %s, want that of the model", h.Format)
	}
}

// A prompt that was handed out is shown again exactly as it was, whatever has changed since.
func TestAPromptIsShownAgainByteForByte(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := create(t, s, agent.New{Name: "a", Blocks: []block.New{{Label: "persona", Value: "calm"}}})
	if _, err := s.PromptAt(t.Context(), s.org, a.ID, "", 1<<40); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("before any was handed out: got %v, want ErrNotFound", err)
	}
	var all []agent.StoredPrompt
	for i := range 40 {
		say(t, s, a, said(recall.User, fmt.Sprintf("Question <%d>\u2028", i)),
			said(recall.Assistant, strings.Repeat("Answer. ", i)+"!"))
		if i == 20 {
			if _, err := s.Blocks.Edit(t.Context(), s.org, a.ID, "persona", func(string) (string, error) {
				return "loud",
					nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, handOut(t, s, a, []agent.Format{agent.OpenAI, agent.Anthropic, agent.Responses}[i%3]))
	}
	// this is what a compaction does
	if _, err := pool.Exec(t.Context(), `UPDATE conversations SET first_visible = 60 WHERE org = $1`, s.org); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), s.org, a.ID, agent.Update{System: new("Other.")}); err != nil {
		t.Fatal(err)
	}
	handOut(t, s, a, agent.OpenAI)
	for i, want := range all {
		want.Answered, want.Unasked = false, false // these are not stored
		until := want.Seq                          // the last position before the next prompt
		if i+1 < len(all) {
			until = all[i+1].Seq - 1
		}
		for _, seq := range []int64{want.Seq, until} {
			got, err := s.PromptAt(t.Context(), s.org, a.ID, "", seq)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("prompt %d at %d: %v (-want +got):\n%s", i, seq, err, diff)
			}
		}
	}
	if _, err := s.PromptAt(t.Context(), s.org, a.ID, "", all[0].Seq-1); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("before the first: got %v, want ErrNotFound", err)
	}
	stored, err := db.One[int](t.Context(), pool, `SELECT sum(length(bytes)) FROM prompt_parts WHERE org = $1`, s.org)
	handed := 0
	for _, h := range all {
		handed += len(h.Request)
	}
	if err != nil || stored > handed/2 {
		t.Errorf("%d bytes are kept of %d, %v; want the pieces shared", stored, handed, err)
	}
}

// The same prompt is stored once, even if many requests ask for it at once. It is deleted with its agent.
func TestAPromptIsKeptOnce(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	say(t, s, a, said(recall.User, "hi"))
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			if _, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID,
				Format: []agent.Format{agent.OpenAI, agent.Anthropic}[i%2]}); err != nil {
				t.Errorf("hand out: %v", err)
			}
		})
	}
	group.Wait()
	tx := begin(t, pool)
	// this event changes no prompt
	_, err := event.Append(t.Context(), tx, s.org, event.Event{AgentID: a.ID, Type: event.AgentUpdated, RefID: a.ID})
	if err := errors.Join(err, tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := handOut(t, s, a, agent.OpenAI)
	if before, err := s.PromptAt(t.Context(), s.org, a.ID, "", again.Seq); err != nil || before.Seq != again.Seq-1 ||
		!bytes.Equal(before.Request, again.Request) && before.Format == agent.OpenAI {
		t.Errorf("handed out again at %d: shown %+v, %v", again.Seq, before, err)
	}
	count := func(table string) int {
		t.Helper()
		n, err := db.One[int](t.Context(), pool, `SELECT count(*) FROM `+table+` WHERE org = $1`, s.org)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("prompts"); n != 2 {
		t.Errorf("%d prompts are kept, want one of each format", n)
	}
}

// Requests for prompts do not fail when their agent is deleted meanwhile.
func TestPromptsGoWithTheirAgent(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	var group sync.WaitGroup
	for range 8 {
		a := create(t, s, agent.New{Name: "a"})
		say(t, s, a, said(recall.User, "hi"))
		for range 3 {
			group.Go(func() {
				_, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
				if err != nil && !errors.Is(err, db.ErrNotFound) {
					t.Errorf("hand out: %v", err)
				}
			})
		}
		group.Go(func() {
			if err := s.Delete(t.Context(), s.org, a.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
	group.Wait()
	n, err := db.One[int](t.Context(), pool, `
		SELECT (SELECT count(*) FROM prompts WHERE org = $1) + (SELECT count(*) FROM prompt_parts WHERE org = $1)`, s.org)
	if n != 0 || err != nil {
		t.Errorf("%d rows are left of agents that are gone (%v)", n, err)
	}
}

// A view that does not fit the window is compacted before the prompt is handed out. The summary comes first.
func TestAPromptFitsItsWindow(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(4000)})
	var messages []recall.Draft
	for i := range 100 {
		messages = append(messages, said(recall.User, fmt.Sprintf("What about %d?", i)),
			said(recall.Assistant, strings.Repeat("So much. ", 40)))
	}
	say(t, s, a, messages...)
	for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic} {
		h := handOut(t, s, a, f)
		if h.Tokens.Total > 3600 || h.Tokens.Summary == 0 || !bytes.Contains(h.Request,
			[]byte("are hidden. This is a summary")) {
			t.Errorf("%s: %+v, want at most 90 %% of 4000 with a summary", f, h.Tokens)
		}
	}
	o, _, err := s.Overview(t.Context(), s.org, a.ID, "")
	if err != nil || o.SummaryMemory == nil || o.TokensSummaryMemory == 0 ||
		!strings.Contains(o.External, "previous messages are stored in recall memory") {
		t.Errorf("the overview: %+v, %v", o, err)
	}
	sum := o.TokensSystem + o.TokensCoreMemory + o.TokensToolRules + o.TokensDirectories + o.TokensExternal +
		o.TokensFunctions + o.TokensSummaryMemory + o.TokensMessages
	if sum != o.WindowCurrent {
		t.Errorf("the parts of the overview have %d tokens, all of it %d", sum, o.WindowCurrent)
	}
}

func TestAViewOfTooManyMessagesIsCountedAndCompacted(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	s, _ := newStore(t)
	s.Tokens = tokens.New()
	a := create(t, s, agent.New{Name: "a", Model: new("openai/gpt-4o"), WindowLimit: new(10_000_000)})
	drafts := make([]recall.Draft, recall.MaxMessages)
	for i := range drafts {
		drafts[i] = said(recall.User, "the")
	}
	say(t, s, a, drafts...)
	say(t, s, a, drafts[:5]...)
	o, messages, err := s.Overview(t.Context(), s.org, a.ID, "")
	if err != nil || o.NumMessages != 10_006 || o.TokensMessages != 5*10_005 || len(messages) != 1001 {
		t.Errorf("the overview: %d messages of %d tokens, %d shown, %v", o.NumMessages, o.TokensMessages, len(messages), err)
	}
	if n := strings.Count(string(handOut(t, s, a, agent.OpenAI).Request), `"the"`); n == 0 || n > 7000 {
		t.Errorf("the prompt has %d messages", n)
	}
}

// A prompt that is handed out again gets a new time, because the provider's cache lasts longer after each use.
func TestAPromptHandedOutAgainIsNew(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	say(t, s, a, said(recall.User, "Hello."))
	first := handOut(t, s, a, agent.OpenAI)
	if _, err := pool.Exec(t.Context(), `UPDATE prompts SET handed_out_at = '2020-01-01'
		WHERE org = $1`, s.org); err != nil {
		t.Fatal(err)
	}
	if again := handOut(t, s, a, agent.OpenAI); again.SHA256 != first.SHA256 {
		t.Fatal("the second prompt differs")
	}
	type row struct {
		Rows int     `db:"rows"`
		Age  float64 `db:"age"`
	}
	got, err := db.One[row](t.Context(), pool, `
		SELECT count(*)::integer AS rows, extract(epoch FROM now() - max(handed_out_at))::float8 AS age FROM prompts
		WHERE org = $1`, s.org)
	if err != nil || got.Rows != 1 || got.Age > 1800 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A view has one warning that its window fills, however often the window fills.
func TestAWarningStandsOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(16_000)})
	text := strings.Repeat("and so it goes on ", 100)
	for range 24 {
		say(t, s, a, said(recall.User, text), said(recall.Assistant, "Yes."))
	}
	for _, window := range []int{16_000, 64_000, 16_000} {
		change := agent.Update{WindowLimit: agent.Limit{Set: true, Value: &window}}
		if _, err := s.Update(t.Context(), s.org, a.ID, change); err != nil {
			t.Fatal(err)
		}
		p := handOut(t, s, a, agent.OpenAI)
		if n := bytes.Count(p.Request, []byte("The context window is ")); n != 1 {
			t.Errorf("in a window of %d, with %d tokens in use, there are %d warnings", window, p.Tokens.Total, n)
		}
	}
}
