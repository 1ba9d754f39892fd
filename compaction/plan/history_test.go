package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// history makes up what an agent was told, did and saw.
type history struct {
	*rand.Rand
	messages []recall.Message
	position int
	seq      int64
	calls    int
	big      int // tokens of a large message

	waiting []string // ids of calls with results that come late
}

func newHistory(seed uint64) *history {
	return &history{Rand: rand.New(rand.NewPCG(seed, 7)), position: 1, seq: 3, big: 2000}
}

// tokensOf counts a message's tokens as the log does.
func tokensOf(parts []recall.Part) int {
	n := 4
	for _, p := range parts {
		n += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input) + 1000*len(p.Images)
		if p.Type == recall.Image {
			n += 1000
		}
	}
	return n
}

// add appends a message. Positions and seqs have gaps for messages that the model does not see, and for other events.
func (h *history) add(role recall.Role, step string, parts ...recall.Part) {
	h.position += 1 + h.IntN(12)/11
	h.seq += 1 + int64(h.IntN(4))
	m := recall.Message{ID: fmt.Sprintf("message-%08d-0000-4000-8000-000000000000", h.position), Seq: h.seq,
		Position: h.position,
		Role:     role, Content: parts, Tokens: tokensOf(parts)}
	if step != "" {
		m.StepID = &step
	}
	h.messages = append(h.messages, m)
}

func text(s string) recall.Part { return recall.Part{Type: recall.Text, Text: s} }
func image() recall.Part        { return recall.Part{Type: recall.Image, Source: json.RawMessage(`{}`)} }
func result(id, s string) recall.Part {
	return recall.Part{Type: recall.ToolReturn, CallID: id, Text: s}
}
func called(id, input string) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: "run", Input: input}
}

// Texts to cut from. The characters of each have the same size.
var (
	lines   = strings.Repeat("a line of a log, which says something or other\n", 8000)
	solid   = strings.Repeat("abcdefghijklmnop", 24_000)
	chinese = strings.Repeat("記憶服務器保存每一個消息", 8000)
	faces   = strings.Repeat("👩\u200d🚀🙂", 8000)
	colours = strings.Repeat("\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[0m ", 8000)
)

// saying returns a text of about this many tokens.
func (h *history) saying(tokens int) string {
	cut := func(s string, size int) string {
		size = min(max(size, 4), len(s)-1)
		for !utf8.RuneStart(s[size]) {
			size--
		}
		return s[:size]
	}
	switch h.IntN(8) {
	case 0:
		return cut(chinese, tokens*3)
	case 1:
		return cut(faces, tokens*4)
	case 2:
		return cut(colours, tokens*4)
	case 3:
		return cut(solid, tokens*4)
	default:
		return cut(lines, tokens*4)
	}
}

func (h *history) size() int {
	if h.IntN(16) == 0 {
		return h.big
	}
	return 1 + h.IntN(120)
}

func (h *history) id() string {
	h.calls++
	if h.IntN(20) == 0 {
		return "call_0" // a repeated id
	}
	return fmt.Sprintf("call_%d", h.calls)
}

// input returns arguments; few are long, and few are not JSON.
func (h *history) input() string {
	if h.IntN(10) == 0 {
		return h.saying(h.size())
	}
	text, err := json.Marshal(map[string]string{"path": "a/b.txt", "text": h.saying(1 + h.size()*h.IntN(2))})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (h *history) user() {
	parts := []recall.Part{text(h.saying(h.size()))}
	if h.IntN(10) == 0 {
		parts = append(parts, image())
	}
	h.add(recall.User, "", parts...)
}

func (h *history) assistant() { h.add(recall.Assistant, "", text(h.saying(h.size()))) }

// tools adds parallel calls, and their results in any order, in one message or several. The last open calls have no
// result yet.
func (h *history) tools(n, open int) {
	h.calls++
	step := fmt.Sprintf("step-%d", h.calls)
	ids := make([]string, 0, n)
	seen := map[string]bool{}
	parts := []recall.Part{text("I look.")}
	for len(ids) < n {
		if id := h.id(); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
			parts = append(parts, called(id, h.input()))
		}
	}
	if n > 1 && h.IntN(3) == 0 { // a call that waits for approval is a message of its own
		h.add(recall.Assistant, step, parts[:n]...)
		h.add(recall.Assistant, step, parts[n])
	} else {
		h.add(recall.Assistant, step, parts...)
	}
	h.waiting = append(h.waiting, ids[n-open:]...)
	ids = ids[:n-open]
	h.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var results []recall.Part
	for i, id := range ids {
		results = append(results, result(id, h.saying(h.size())))
		if h.IntN(15) == 0 {
			results[len(results)-1].Images = []json.RawMessage{json.RawMessage(`{}`)}
		}
		if i == len(ids)-1 || h.IntN(2) == 0 {
			h.add(recall.Tool, step, results...)
			results = nil
			if i < len(ids)-1 && h.IntN(6) == 0 {
				h.user() // the user did not wait
			}
		}
	}
}

// lateResults adds results of calls that the conversation went on without.
func (h *history) lateResults() {
	for n := 1 + h.IntN(len(h.waiting)); n > 0; n-- {
		h.add(recall.Tool, "", result(h.waiting[0], h.saying(h.size())))
		h.waiting = h.waiting[1:]
	}
}

// live goes on for about n messages.
func (h *history) live(n int) {
	storm := h.IntN(3) == 0
	for end := len(h.messages) + n; len(h.messages) < end; {
		switch k := h.IntN(20); {
		case storm && len(h.messages) > 0 || k < 6:
			h.tools(1+h.IntN(2)*h.IntN(6), 0)
		case k < 12:
			h.user()
		case k < 17:
			h.assistant()
		case k == 17:
			h.add(recall.Tool, "", result("call_nobody_made", h.saying(10)))
		case k == 18 && len(h.waiting) > 0:
			h.lateResults()
		case k == 18:
			h.tools(2, 1) // abandoned, unless it is the last call or is answered late
		default:
			h.add(recall.System, "", text("Mind the time."))
		}
	}
	if h.IntN(6) == 0 {
		k := 1 + h.IntN(4)
		h.tools(k, 1+h.IntN(k))
	}
}

// wide returns settings anywhere in their ranges.
func (h *history) wide() plan.Settings {
	s := plan.Defaults()
	s.Mode = []plan.Mode{plan.SlidingWindow, plan.SlidingWindow, plan.All,
		plan.SelfCompactAll,
		plan.SelfCompactSlidingWindow}[h.IntN(5)]
	if h.IntN(2) == 0 {
		return s
	}
	s.Percentage = 0.05 + 0.9*h.Float64()
	s.Trigger = 0.5 + 0.48*h.Float64()
	s.Goal = 0.1 + (s.Trigger-0.2)*h.Float64()
	s.ClipChars = []*int{nil, new(100), new(4000)}[h.IntN(3)]
	return s
}

// window returns a window for the history so far. Mostly it is nearly full, or too small.
func (h *history) window() clip.View {
	v := clip.View{Messages: h.messages}
	v.Window = max(int(float64(clip.Counted(v))*(0.4+1.2*h.Float64())), 1500)
	switch h.IntN(10) {
	case 0:
		v.Fixed = v.Window/2 + h.IntN(v.Window*6/10)
	default:
		v.Fixed = h.IntN(v.Window * 2 / 5)
	}
	v.Tools = h.IntN(v.Fixed + 1)
	return v
}
