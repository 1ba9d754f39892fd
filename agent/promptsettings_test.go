package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

const mark = `,"cache_control":{"type":"ephemeral"}`

// parted parts a request without marks at its state.
func parted(t *testing.T, request []byte) (before, state []byte) {
	t.Helper()
	plain := bytes.ReplaceAll(request, []byte(mark), nil)
	at := bytes.Index(plain, []byte("<current_state>"))
	if at < 0 || bytes.Count(plain, []byte("<current_state>")) != 1 {
		t.Fatalf("the request has no state, or several: %s", plain)
	}
	before = plain[:bytes.LastIndexByte(plain[:at], '{')]
	return bytes.TrimRight(before, `,{"`), plain[at:]
}

// Deduplication and clipping come before the marks for a cache: what is marked is what is sent. Only the newest results
// may be shown otherwise later: once they are answered, they may become a pointer to an older copy.
func TestAViewIsShortenedBeforeTheMarks(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := under(t, s, `{"steps":[{"step":"token_clip","max_tokens":200},{"step":"dedup","keep":"oldest"}]}`)
	long := strings.Repeat("what the file says\n", 400)
	result := func(turn int) []byte { return fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":"call-%d"`, turn) }
	var before []byte
	for turn := range 8 {
		id := fmt.Sprint("call-", turn)
		say(t, s, a, said(recall.User, fmt.Sprint("Read file ", turn)),
			recall.Draft{Role: recall.Assistant, Content: []recall.Part{call(id, "read_file", `{"path":"a.go"}`)}},
			returned(recall.Part{CallID: id, Text: long[:len(long)-turn%2*19]}))
		h := handOut(t, s, a, agent.Anthropic)
		if n := bytes.Count(h.Request, []byte(mark)); n != 4 {
			t.Errorf("turn %d: %d marks in %s", turn, n, h.Request)
		}
		begins, _ := parted(t, h.Request)
		if !bytes.HasPrefix(begins, before) {
			t.Errorf("turn %d: a text that was answered before changed:\n%s\n%s", turn, before, begins)
		}
		before = begins[:bytes.Index(begins, result(turn))]
		last := h.Request[bytes.Index(h.Request, result(turn)):bytes.LastIndex(h.Request, []byte(mark))]
		if len(last) > 1_500 || bytes.Contains(last, []byte("<current_state>")) {
			t.Errorf("turn %d: the last mark is behind %s", turn, last)
		}
		if turn < 3 {
			continue
		}
		marked := h.Request[bytes.Index(h.Request, result(turn-1)):]
		marked = marked[:bytes.Index(marked, []byte(mark))]
		if !bytes.Contains(marked, []byte("the same text as at seq ")) || !bytes.Contains(marked, []byte("Read file")) {
			t.Errorf("turn %d: the mark of the request before is behind %s", turn, marked)
		}
	}
}

func TestPromptSettings(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	made := func(p *agent.PromptSettings, model string) agent.Agent {
		a := create(t, s, agent.New{Name: "a", Model: &model, Settings: agent.Settings{Prompt: p}})
		say(t, s, a, said(recall.User, "Hello?"))
		return a
	}
	for name, c := range map[string]struct {
		settings     *agent.PromptSettings
		model        string
		format       agent.Format
		marks, keyed bool
		want         string // of the request
	}{
		"Anthropic": {nil, "anthropic/claude-sonnet-4-5", agent.Anthropic, true, false, `{"type":"text","text":"<current_`},
		"no marks":  {&agent.PromptSettings{Marks: new(false)}, "openai/gpt-4o", agent.Anthropic, false, false, ""},
		"OpenAI":    {nil, "openai/gpt-4o", agent.OpenAI, false, true, `{"role":"user","content":"<current_state>`},
		"responses": {nil, "gpt-5", agent.Responses, false, true, `"content":[{"type":"input_text","text":"<current_`},
		"another":   {nil, "mistral/large", agent.OpenAI, false, false, ""},
		"always":    {&agent.PromptSettings{CacheKey: "always"}, "mistral/large", agent.OpenAI, false, true, ""},
		"never":     {&agent.PromptSettings{CacheKey: "never"}, "openai/gpt-4o", agent.Responses, false, false, ""},
		"the system": {&agent.PromptSettings{StateRole: "system"}, "openai/gpt-4o", agent.OpenAI, false, true,
			`{"role":"system","content":"<current_state>`},
		"the system, Anthropic": {&agent.PromptSettings{StateRole: "system"}, "openai/gpt-4o", agent.Anthropic, true, false,
			`"text":"<system>\n<current_state>`},
	} {
		a := made(c.settings, c.model)
		h := handOut(t, s, a, c.format)
		if bytes.Contains(h.Request, []byte(mark)) != c.marks || !bytes.Contains(h.Request, []byte(c.want)) ||
			bytes.Contains(h.Request, []byte(`"prompt_cache_key":"`+h.ConversationID+`"`)) != c.keyed {
			t.Errorf("%s: got %s", name, h.Request)
		}
	}
	for _, p := range []agent.PromptSettings{{StateRole: "assistant"}, {CacheKey: "x"}} {
		if _, err := s.Create(t.Context(), s.org, agent.New{Name: "a", Settings: agent.Settings{Prompt: &p}}); err == nil ||
			!errors.Is(err, db.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", p, err)
		}
	}
}

// The state is in the record of a prompt, with the form in which it was sent. It is in no message, in no listed system
// prompt, and in no request for a summary.
func TestTheStateIsNoMessage(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(16_000), Blocks: []block.New{{Label: "b", Value: "x"}},
		Settings: agent.Settings{CompactionSettings: []byte(`{"mode":"self_compact_all"}`)}})
	asked := &recording{}
	s.Compaction.Models = func(context.Context, string) *summary.Model { return &summary.Model{Summarizer: asked} }
	remember(t, s, a, "", working.Change{Field: working.Task, Text: "Ship it"})
	read(t, s, a, 6)
	h := handOut(t, s, a, agent.OpenAI)
	at, err := s.PromptAt(t.Context(), s.org, a.ID, "", h.Seq)
	if err != nil || !bytes.Equal(at.Request, h.Request) {
		t.Errorf("at its position: %v, %s, want %s", err, at.Request, h.Request)
	}
	if _, state := parted(t, at.Request); !bytes.Contains(state, []byte("Ship it")) {
		t.Errorf("the record of the prompt ends with %s", state)
	}
	c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compact(t.Context(), s.org, c, agent.CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := asked.text(); strings.Contains(text, frame.State) || !strings.Contains(text, "what the file says") {
		t.Errorf("the request for a summary: %s", text)
	}
	listed, err := s.Recompile(t.Context(), s.org, c, false)
	for _, part := range []string{"<memory_blocks>",
		"<memory_metadata>\n- AGENT_ID: " + a.ID + "\n- CONVERSATION_ID: default\n- System prompt last recompiled: ",
		frame.Note + "\n</memory_metadata>\n\n<working_memory>"} {
		if err != nil || !strings.Contains(listed, part) || strings.Contains(listed, frame.State) {
			t.Errorf("the listed system prompt lacks %q, or has a state: %v, %s", part, err, listed)
		}
	}
	all, err := s.Recall.Messages(t.Context(), s.org, recall.MessageFilter{AgentID: a.ID}, db.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.Contains(m.Text(), frame.State) {
			t.Errorf("the log has the state: %+v", m)
		}
	}
}

// recording is a model that keeps the texts of its requests.
type recording struct {
	mu  sync.Mutex
	all []string
}

func (r *recording) Complete(_ context.Context, q summary.Request) (summary.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range q.Messages {
		r.all = append(r.all, m.Content)
	}
	return summary.Reply{Text: "The files say what they say.", Finish: "stop", PromptTokens: 700, OutputTokens: 9}, nil
}

func (r *recording) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.all, "\n")
}

// What the state takes counts for the 90 % of the window above which a conversation is compacted.
func TestTheStateCountsForTheWindow(t *testing.T) {
	t.Parallel()
	const window = 8_000
	s, _ := newStore(t)
	for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic, agent.Responses} {
		a := create(t, s, agent.New{Name: "a", WindowLimit: new(window)})
		for i := 0; ; i++ {
			p, err := s.Assemble(t.Context(), s.org, a.ID, "", f)
			if err != nil {
				t.Fatal(err)
			}
			if p.Tokens.Total > window*86/100 {
				break
			}
			say(t, s, a, said(recall.User, fmt.Sprintf("%d %s", i, strings.Repeat("and so on ", 20))),
				said(recall.Assistant, "Yes."))
		}
		compactions := func() int {
			list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{})
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if h := handOut(t, s, a, f); h.Tokens.Total > window*9/10 || compactions() > 0 {
			t.Fatalf("%s: %d tokens and %d compactions before the state grew", f, h.Tokens.Total, compactions())
		}
		var decisions []working.Change
		for i := range 20 {
			decisions = append(decisions, working.Change{Field: working.Decisions,
				Text: fmt.Sprintf("%d: %s", i, strings.Repeat("decided ", 20))})
		}
		remember(t, s, a, "", decisions...)
		h := handOut(t, s, a, f)
		if _, state := parted(t, h.Request); h.Tokens.Total > window*9/10 || compactions() != 1 || h.Tokens.Working < 300 ||
			!bytes.Contains(state, []byte("19: decided")) {
			t.Errorf("%s: %+v, %d compactions, %s", f, h.Tokens, compactions(), state)
		}
		var request map[string]json.RawMessage
		if err := json.Unmarshal(h.Request, &request); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
