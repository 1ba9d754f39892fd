package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// history makes up what an agent was told, thought, did and saw.
type history struct {
	*rand.Rand
	clip.View
	now   time.Time
	calls int
	said  []string // texts of results; some occur again

	longest int // characters of a result
}

// epoch is the beginning of every history.
var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 18)), now: epoch, longest: 9_000}
	if h.IntN(6) == 0 {
		h.longest = 30_000
	}
	return h
}

// add appends a message. Positions have gaps now and then.
func (h *history) add(role recall.Role, parts ...recall.Part) {
	position := 1 + h.IntN(12)/11
	if n := len(h.Messages); n > 0 {
		position += h.Messages[n-1].Position
	}
	h.Messages = append(h.Messages, recall.Message{ID: fmt.Sprintf("message-%d", position), Seq: int64(2 * position),
		Position: position, Role: role, Content: parts, Tokens: tokensOf(parts), CreatedAt: h.now})
}

// tokensOf counts a message's tokens as the log does.
func tokensOf(parts []recall.Part) int {
	n := tokens.PerMessage
	for _, p := range parts {
		n += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input) + tokens.PerImage*len(p.Images)
		if p.Type == recall.Image {
			n += tokens.PerImage
		}
	}
	return n
}

func text(s string) recall.Part { return recall.Part{Type: recall.Text, Text: s} }

func thought(s string) recall.Part {
	return recall.Part{Type: recall.Reasoning, Text: s, Signature: "signed", Native: true}
}

func called(id, tool, input string) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: tool, Input: input}
}

func result(id, s string) recall.Part {
	return recall.Part{Type: recall.ToolReturn, CallID: id, Text: s}
}

// tools are the tools that the agents call.
var tools = []string{"read_file", "bash", "grep_files", "write_file", "preview_data", "memory", "expand"}

// saying returns a text of one kind with up to chars characters.
func (h *history) saying(chars int) string {
	piece := []string{"a line of a log, which says something\n", "abcdefghijklmnop", "記憶服務器保存每一個消息", "👩\u200d🚀🙂",
		"\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[0m ", "line\r\n", "error: it failed\n"}[h.IntN(7)]
	runes := []rune(strings.Repeat(piece, 1+chars/len([]rune(piece))))
	return string(runes[:min(chars, len(runes))])
}

// returned returns a tool's output: a text, perhaps one that was returned before, or JSON.
func (h *history) returned() string {
	if len(h.said) > 0 && h.IntN(4) == 0 {
		return h.said[h.IntN(len(h.said))]
	}
	chars := h.IntN(600)
	if h.IntN(6) == 0 {
		chars = h.IntN(h.longest)
	}
	s := h.saying(chars)
	if h.IntN(5) == 0 {
		rows := make([]map[string]any, 1+h.IntN(60))
		for i := range rows {
			rows[i] = map[string]any{"id": i, "text": h.saying(h.IntN(300)), "of": map[string]any{"deep": []any{1, nil, true}}}
		}
		raw, err := json.Marshal(rows)
		if err != nil {
			panic(err)
		}
		s = string(raw)
	}
	h.said = append(h.said, s)
	return s
}

// turn adds an answer of the assistant: a text, or calls with their results. Some results may be missing.
func (h *history) turn(open bool) {
	var parts []recall.Part
	if h.IntN(3) == 0 {
		parts = append(parts, thought(h.saying(1+h.IntN(400))))
	}
	if h.IntN(3) == 0 {
		h.add(recall.Assistant, append(parts, text(h.saying(1+h.IntN(800))))...)
		return
	}
	var results []recall.Part
	for range 1 + h.IntN(2)*h.IntN(4) {
		h.calls++
		id := fmt.Sprintf("call_%d", h.calls)
		input := fmt.Sprintf(`{"path":"file_%d.go","content":%q}`, h.IntN(4), h.saying(h.IntN(2)*h.IntN(500)))
		parts = append(parts, called(id, tools[h.IntN(len(tools))], input))
		r := result(id, h.returned())
		r.IsError = h.IntN(10) == 0
		if h.IntN(20) == 0 {
			r.Images = []json.RawMessage{json.RawMessage(`{}`)}
		}
		results = append(results, r)
	}
	h.add(recall.Assistant, parts...)
	if open {
		results = results[:h.IntN(len(results))]
	}
	h.now = h.now.Add(time.Duration(h.IntN(20)) * time.Second)
	for len(results) > 0 {
		n := 1 + h.IntN(len(results))
		h.add(recall.Tool, results[:n]...)
		results = results[n:]
	}
}

// live adds n messages.
func (h *history) live(n int) {
	for end := len(h.Messages) + n; len(h.Messages) < end; {
		h.now = h.now.Add(time.Duration(h.IntN(100)) * time.Second)
		switch k := h.IntN(12); {
		case k < 3:
			h.add(recall.User, text(h.saying(1+h.IntN(900))))
		case k == 3:
			h.add(recall.System, text("Mind the time."))
		default:
			h.turn(false)
		}
	}
	if h.IntN(5) == 0 {
		h.turn(true)
	}
	if h.IntN(10) == 0 {
		h.now = h.now.Add(2 * time.Hour)
	}
}
