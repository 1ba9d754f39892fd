package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// viewBuilder builds a view message by message, one second apart.
type viewBuilder struct {
	clip.View
	calls int
}

func window(tokens int) *viewBuilder { return &viewBuilder{View: clip.View{Window: tokens}} }

func (v *viewBuilder) put(role recall.Role, parts ...recall.Part) *viewBuilder {
	at := len(v.Messages) + 1
	v.Messages = append(v.Messages, recall.Message{ID: fmt.Sprintf("message-%d", at), Seq: int64(at), Position: at,
		Role: role, Content: parts, Tokens: tokensOf(parts), CreatedAt: epoch.Add(time.Duration(at) * time.Second)})
	return v
}

func (v *viewBuilder) user(chars int) *viewBuilder { return v.put(recall.User, text(sea(chars))) }

func (v *viewBuilder) says(chars int) *viewBuilder {
	return v.put(recall.Assistant, text(sea(chars)))
}

// call adds a tool call with a text of chars characters as its only argument, and its result.
func (v *viewBuilder) call(tool string, chars int, returned string) *viewBuilder {
	return v.calling(tool, strings.Repeat("x", chars), returned)
}

func (v *viewBuilder) calling(tool, input, returned string) *viewBuilder {
	v.calls++
	id := fmt.Sprintf("call_%d", v.calls)
	return v.put(recall.Assistant, called(id, tool, input)).put(recall.Tool, result(id, returned))
}

// repeat calls a tool several times, with arguments of 100 characters and different results.
func (v *viewBuilder) repeat(times int, tool string, chars int) *viewBuilder {
	for range times {
		v.call(tool, 100, fmt.Sprintf("%-10d", v.calls)+sea(chars-10))
	}
	return v
}

// sea returns a text of chars characters without any word about how a call went.
func sea(chars int) string { return strings.Repeat("the sea ", chars/8+1)[:max(chars, 0)] }

// prune returns the view after a policy's edits, and the edits.
func (v *viewBuilder) prune(policyText string, at policy.Moment) (clip.View, []clip.Edit) {
	raw := []byte(policyText)
	if !json.Valid(raw) {
		raw = fmt.Appendf(nil, "%q", policyText)
	}
	p, err := policy.Parse(raw)
	if err != nil {
		panic(fmt.Errorf("%s: %w", policyText, err))
	}
	return p.Prune(v.View, at)
}

// kinds counts edits by kind.
func kinds(edits []clip.Edit) map[clip.EditKind]int {
	n := map[clip.EditKind]int{}
	for _, e := range edits {
		n[e.Kind]++
	}
	return n
}

// shownChars counts the characters of a view, as shown.
func shownChars(v clip.View) (n int) {
	for _, m := range v.AsShown() {
		for _, p := range m.Content {
			n += utf8.RuneCountInString(p.Text + p.Input)
		}
	}
	return n
}

func touched(ago time.Duration) policy.Moment {
	return policy.Moment{Now: epoch.Add(24 * time.Hour), Touched: epoch.Add(24*time.Hour - ago)}
}
