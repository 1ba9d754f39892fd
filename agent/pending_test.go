package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat/chattest"
)

// checkSendable fails the test if a provider would refuse the prompt. If calls are pending in the prompt, a provider
// must refuse it.
func checkSendable(t *testing.T, h agent.StoredPrompt, pending bool) {
	t.Helper()
	var r struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(h.Request, &r); err != nil {
		t.Fatal(err)
	}
	check := chattest.Anthropic
	if h.Format == agent.OpenAI {
		check = chattest.OpenAI
	}
	if err := check(r.Messages); (err == nil) == pending {
		t.Errorf("%s at seq %d, of %d pending calls: %v", h.Format, h.Seq, len(h.Pending), err)
	}
}

// history appends messages of all kinds to an agent's log: parallel calls, and results that are out of order, repeated,
// or of no call.
type history struct {
	*rand.Rand
	open []string // ids of calls without a result
	made int
}

func (h *history) next() recall.Draft {
	text := strings.Repeat("and so it goes on ", 1+h.IntN(60))
	switch n := h.IntN(10); {
	case n < 2:
		return said(recall.User, text)
	case n < 3:
		return said(recall.Assistant, text)
	case n < 5:
		d := recall.Draft{Role: recall.Assistant}
		for range 1 + h.IntN(4) {
			h.made++
			id := fmt.Sprintf("call_%d", h.made%40) // so that ids repeat
			h.open, d.Content = append(h.open, id), append(d.Content, call(id, "look", `{"at":"it"}`))
		}
		return d
	case n < 6 || len(h.open) == 0:
		return returned(recall.Part{CallID: fmt.Sprintf("call_%d", h.IntN(60)), Text: "stray " + text})
	}
	i := h.IntN(len(h.open))
	id := h.open[i]
	if h.IntN(5) > 0 {
		h.open = append(h.open[:i], h.open[i+1:]...)
	}
	return returned(recall.Part{CallID: id, Text: text})
}

// Whatever an agent's log contains, and however often it is compacted, providers accept its prompts once the pending
// calls are answered. They refuse only prompts that say that calls are pending.
func TestPromptsOfAnyHistoryCanBeSent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Of(1, 3)) { //nolint:gosec // it is small
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			a := create(t, s, agent.New{Name: "a", WindowLimit: new(6000)})
			h := &history{Rand: rand.New(rand.NewPCG(seed, 1))} // #nosec G404 -- the same history for the same seed
			pending := 0
			for i := range 120 {
				_, err := s.Recall.Append(t.Context(), s.org, a.ID, recall.DefaultConversation, []recall.Draft{h.next()})
				if err != nil && !errors.Is(err, db.ErrConflict) { // a second result of a call is a conflict
					t.Fatal(err)
				}
				if i%4 > 0 {
					continue
				}
				for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic} {
					handed := handOut(t, s, a, f)
					checkSendable(t, handed, len(handed.Pending) > 0)
					pending += len(handed.Pending)
					answered, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: f,
						AnswerPending: true})
					if err != nil {
						t.Fatal(err)
					}
					checkSendable(t, answered, false)
				}
			}
			list, err := s.Compaction.Compactions(t.Context(), s.org, a.ID, "", db.Page{Limit: 9})
			if err != nil || len(list) == 0 || pending == 0 {
				t.Errorf("%d compactions, %v, %d pending calls; the test wants some of both", len(list), err, pending)
			}
		})
	}
}

// A prompt still fits the window after many pending calls get their results.
func TestAnsweredCallsFitTheWindow(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
	var messages []recall.Draft
	for range 20 {
		messages = append(messages, said(recall.User, strings.Repeat("and so it goes on ", 60)),
			said(recall.Assistant, "Yes."))
	}
	say(t, s, a, messages...)
	say(t, s, a, calls(1, 150, `{}`, "")[0])
	waiting := handOut(t, s, a, agent.OpenAI)
	if len(waiting.Pending) != 150 || waiting.Tokens.Total < 6800 {
		t.Errorf("%d calls are pending in %d tokens, want 150 in more than 6,800", len(waiting.Pending), waiting.Tokens.Total)
	}
	h, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID, Format: agent.OpenAI,
		AnswerPending: true})
	if err != nil || h.Tokens.Total > 8000 {
		t.Errorf("got a prompt of %d tokens, %v; want it in 8,000", h.Tokens.Total, err)
	}
	checkSendable(t, h, false)
}
