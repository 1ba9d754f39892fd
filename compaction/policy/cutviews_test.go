package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// talk makes up a conversation from messages with given sizes in tokens.
type talk struct {
	*rand.Rand
	clip.View
	calls   int
	at      int      // position of the last message
	waiting []string // calls with results that come late or never
}

func newTalk(window, fixed int) *talk {
	return &talk{Rand: rand.New(rand.NewPCG(1, 2)), View: clip.View{Window: window, Fixed: fixed}}
}

// filler is a text with one token per word, to cut long texts from.
var filler = strings.Repeat("the ", 1<<20)

// sized returns a text of about size tokens that begins with about.
func sized(about string, size int) string {
	return about + filler[:min(4*max(size-tokens.Estimate(about), 0), len(filler))]
}

func (t *talk) put(role recall.Role, size int, parts ...recall.Part) *talk {
	t.at += 1 + t.IntN(10)/9
	position := t.at
	if size == 0 {
		size = tokens.PerMessage
		for _, p := range parts {
			size += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input)
		}
	}
	t.Messages = append(t.Messages, recall.Message{ID: fmt.Sprintf("message-%08d-0000-4000-8000-000000000000", position),
		Seq: int64(position + 100), Position: position, Role: role, Content: parts, Tokens: size})
	return t
}

// say appends a message of size tokens.
func (t *talk) say(role recall.Role, size int) *talk {
	about := fmt.Sprintf("%s says no. %d about src/file%d.go. ", role, len(t.Messages), t.IntN(50))
	return t.put(role, size, recall.Part{Type: recall.Text, Text: sized(about, size-tokens.PerMessage)})
}

// look appends a tool call of 20 tokens, and its result of size tokens.
func (t *talk) look(size int) *talk { return t.called("read_file", size, false) }

func (t *talk) called(tool string, size int, failed bool) *talk {
	t.calls++
	id := fmt.Sprint("call-", t.calls)
	t.put(recall.Assistant, 20, recall.Part{Type: recall.ToolCall, CallID: id, Name: tool,
		Input: fmt.Sprintf(`{"path":"src/file%d.go"}`, t.calls)})
	return t.put(recall.Tool, size, recall.Part{Type: recall.ToolReturn, CallID: id, IsError: failed,
		Text: sized(fmt.Sprintf("result %d: ", t.calls), size-tokens.PerMessage)})
}

// open appends calls; only the first answered ones have a result.
func (t *talk) open(calls, answered, size int) *talk {
	var calling []recall.Part
	first := t.calls + 1
	for range calls {
		t.calls++
		calling = append(calling, recall.Part{Type: recall.ToolCall, CallID: fmt.Sprint("call-", t.calls), Name: "run",
			Input: `{"text":"x"}`})
	}
	t.put(recall.Assistant, 0, calling...)
	for i := range answered {
		t.put(recall.Tool, size, recall.Part{Type: recall.ToolReturn, CallID: fmt.Sprint("call-", first+i),
			Text: sized("result ", size-tokens.PerMessage)})
	}
	for i := answered; i < calls; i++ {
		t.waiting = append(t.waiting, fmt.Sprint("call-", first+i))
	}
	return t
}

// late appends the result of a waiting call, wherever that call is by now.
func (t *talk) late(size int) *talk {
	if len(t.waiting) == 0 {
		return t
	}
	i := t.IntN(len(t.waiting))
	id := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return t.put(recall.Tool, size, recall.Part{Type: recall.ToolReturn, CallID: id,
		Text: sized("late result ", size-tokens.PerMessage)})
}

// randomTalk returns a conversation of about n messages that fills a random share of its window.
func randomTalk(seed uint64, n int) *talk {
	rng := rand.New(rand.NewPCG(seed, 11))
	window := []int{1_000, 2_000, 4_000, 4_000, 8_000, 8_000, 16_000, 32_000, 32_000, 128_000, 0}[rng.IntN(11)]
	if seed%64 == 63 {
		window = []int{200_000, 1_000_000}[rng.IntN(2)]
	}
	t := &talk{Rand: rng, View: clip.View{Window: window, Fixed: rng.IntN(max(window, 8_000)*3/10 + 1)}}
	t.Tools = t.Fixed / 3
	t.goOn(n, max(window, 8_000))
	return t
}

// goOn appends about n messages that together have about window tokens.
func (t *talk) goOn(n, window int) {
	size := func() int {
		most := max(window*(1+t.IntN(4))/(2*max(n, 1)), 10)
		if t.IntN(24) == 0 {
			most *= 8
		}
		return 5 + t.IntN(most)
	}
	for end := len(t.Messages) + n; len(t.Messages) < end; {
		switch k := t.IntN(22); {
		case k >= 20:
			t.late(size())
		case k < 5:
			t.say(recall.User, min(size(), window/8))
		case k < 9:
			t.say(recall.Assistant, size())
		case k < 15:
			t.called([]string{"read_file", "edit_file", "run", "grep"}[t.IntN(4)], size(), t.IntN(6) == 0)
		case k < 17:
			calls := 1 + t.IntN(4)
			t.open(calls, calls, size())
		case k == 17:
			t.open(2, 1, size())
		case k == 18:
			t.put(recall.Tool, 0, recall.Part{Type: recall.ToolReturn, CallID: "nobody", Text: "an orphan"})
		case k == 19:
			t.put(recall.Assistant, 0, recall.Part{Type: recall.Reasoning, Text: "I think."},
				recall.Part{Type: recall.Text, Text: "We decided to use plan B because plan A failed."})
		}
	}
	if t.IntN(8) == 0 {
		t.open(1+t.IntN(3), 0, size())
	}
}

// policyOf returns a policy with these steps and settings as JSON.
func policyOf(steps ...map[string]any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"steps": steps})
	if err != nil {
		panic(err)
	}
	return raw
}
