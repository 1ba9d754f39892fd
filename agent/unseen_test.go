package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// calls returns a step in which the assistant makes n calls, and the results of the calls.
func calls(step, n int, input, result string) []recall.Draft {
	var requested, answered []recall.Part
	for i := range n {
		id := fmt.Sprintf("call_%d_%d", step, i)
		requested = append(requested, call(id, "work", input))
		answered = append(answered, recall.Part{CallID: id, Text: fmt.Sprintf("result %d: %s", i, result)})
	}
	return []recall.Draft{{Role: recall.Assistant, Content: requested}, returned(answered...)}
}

// A prompt contains the newest calls and their results, however large they are.
func TestAPromptHasTheNewestResults(t *testing.T) {
	t.Parallel()
	file := `{"path":"a.txt","text":"` + strings.Repeat("word ", 6000) + `"}`
	for _, c := range []struct {
		name, input, result string
		calls, steps        int
	}{
		{"thirty results of 200 words", `{"n":1}`, strings.Repeat("word ", 200), 30, 1},
		{"a file of 6,000 words is written", file, "OK, written", 1, 1},
		{"and written again and again", file, "OK, written", 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			a := create(t, s, agent.New{Name: "a", WindowLimit: new(8192),
				System: strings.Repeat("Be kind. ", 1200)}) // as many tokens as an agent's tools take
			say(t, s, a, said(recall.User, "Do the work."))
			for step := range c.steps {
				say(t, s, a, calls(step, c.calls, c.input, c.result)...)
				h := handOut(t, s, a, agent.OpenAI)
				if h.Tokens.Total > 8192*9/10 {
					t.Errorf("step %d: the prompt has %d tokens", step, h.Tokens.Total)
				}
				for i := range c.calls {
					id := fmt.Sprintf(`"call_%d_%d"`, step, i)
					result := fmt.Sprintf("result %d: ", i)
					if n := strings.Count(string(h.Request), id); n != 2 || !strings.Contains(string(h.Request), result) {
						t.Errorf("step %d: call %s is there %d times, want it and its result", step, id, n)
					}
				}
			}
			old := strings.Contains(string(handOut(t, s, a, agent.OpenAI).Request), "after this summary is not new")
			if old != (c.steps > 1) {
				t.Errorf("the request is said to be old: %v", old)
			}
		})
	}
}

// A prompt names tools that read hidden and shortened texts only if the agent has these tools.
func TestAPromptNamesNoToolThatIsNotThere(t *testing.T) {
	t.Parallel()
	readers := []string{"expand", "conversation_search", "archival_memory_search", "list_files"}
	for _, has := range [][]string{{}, {"expand"}, {"conversation_search"}, readers[:2]} {
		s, _ := newStore(t)
		s.Tools = func(agent.Agent, bool) (all []agent.Definition) {
			for _, name := range has {
				all = append(all, agent.Definition{Name: name, Schema: []byte(`{"name":"` + name + `"}`)})
			}
			return all
		}
		a := create(t, s, agent.New{Name: "a", WindowLimit: new(16_000), System: "Be kind."})
		fill(t, s, a)
		say(t, s, a, said(recall.User, "Do the work."))
		say(t, s, a, calls(0, 1, `{"text":"`+strings.Repeat("word ", 6000)+`"}`, strings.Repeat("line\n", 12_000))...)
		say(t, s, a, said(recall.Assistant, "Now the next."))
		say(t, s, a, calls(1, 2, `{"n":1}`, strings.Repeat("word ", 6000))...)
		text := string(handOut(t, s, a, agent.OpenAI).Request)
		for _, want := range []string{"Earlier messages do not fit", "characters left out"} {
			if !strings.Contains(text, want) {
				t.Errorf("with %q: the prompt lacks %q", has, want)
			}
		}
		for _, name := range readers {
			if slices.Contains(has, name) != strings.Contains(text, name) {
				t.Errorf("with %q: the prompt names %s: %t", has, name, strings.Contains(text, name))
			}
		}
	}
}

// A message that fits its window alone is handed out after any history. If a message does not fit, the error names it,
// with the tokens that the model counts.
func TestAMessageThatFitsAloneIsHandedOut(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	s, _ := newStore(t)
	s.Tokens = tokens.New()
	const line = "记忆服务器保存每一个消息并且在窗口之内显示。" // the model counts fewer tokens than the estimate
	text := strings.Repeat(line, 10_000/s.Tokens.Count("openai/gpt-4o", line))
	for s.Tokens.Count("openai/gpt-4o", text) < 10_107 {
		text += line
	}
	a := create(t, s, agent.New{Name: "a", Model: new("openai/gpt-4o"), WindowLimit: new(16_000),
		System: strings.Repeat("Be kind, and be brief. ", 500)})
	fill(t, s, a)
	handOut(t, s, a, agent.OpenAI)
	fill(t, s, a)
	say(t, s, a, said(recall.User, text))
	h := handOut(t, s, a, agent.OpenAI)
	if !strings.Contains(string(h.Request), text) || h.Tokens.Total > 14_400 {
		t.Errorf("a prompt of %d tokens, of which %d are of messages", h.Tokens.Total, h.Tokens.Messages)
	}
	say(t, s, a, said(recall.User, text+text))
	_, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: agent.OpenAI})
	want := fmt.Sprintf("(%d tokens)", s.Tokens.Count("openai/gpt-4o", text+text)+tokens.PerMessage)
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s named", err, want)
	}
}

// A conversation with more messages than a prompt may have is compacted, however few tokens the messages take.
func TestAConversationOfShortMessagesIsCompacted(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(1_000_000)})
	for range 15 {
		var drafts []recall.Draft
		for i := range 500 {
			drafts = append(drafts, said(recall.User, fmt.Sprint("tick ", i)), said(recall.Assistant, "tock"))
		}
		say(t, s, a, drafts...)
	}
	if h := handOut(t, s, a, agent.OpenAI); strings.Count(string(h.Request), `"tock"`) > 3500 {
		t.Errorf("the prompt has %d answers", strings.Count(string(h.Request), `"tock"`))
	}
}

// A client that is alone never gets an error about other requests. Even if the messages almost fill a small window, it
// gets a prompt below 95 % of the window, or an error that names what is too big.
func TestALoneClientGetsAPromptOrWhatIsTooBig(t *testing.T) {
	t.Parallel()
	for words := scale.Of(2440, 2400); words < 3500; words += scale.Of(120, 40) {
		t.Run(fmt.Sprint(words, " words"), func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			s.Tokens = tokens.New()
			a := create(t, s, agent.New{Name: "a", Model: new("qwen/qwen2.5"), WindowLimit: new(4096), System: "Be kind."})
			say(t, s, a, said(recall.User, strings.Repeat("word ", words)))
			for step, c := range []struct{ calls, input, result int }{{8, 5, 3000}, {1, 2000, 200}, {1, 5, 5}, {1, 2000, 5}} {
				input := fmt.Sprintf(`{"x":%q}`, strings.Repeat("y", c.input))
				say(t, s, a, calls(step, c.calls, input, strings.Repeat("z y ", c.result/4))...)
				h, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: agent.OpenAI})
				if err == nil && h.Tokens.Total >= 4096*95/100 {
					t.Errorf("step %d: a prompt of %d tokens", step, h.Tokens.Total)
				}
				if err != nil && !strings.Contains(err.Error(), "What must stay in the context window") {
					t.Errorf("step %d: %v", step, err)
				}
			}
		})
	}
}
