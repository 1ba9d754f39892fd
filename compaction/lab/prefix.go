package lab

import (
	"hash/fnv"
	"io"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// shownMessage is a message in a prompt: a hash of what it shows, and its tokens.
type shownMessage struct {
	Sum    uint64 `json:"sum,string"`
	Tokens int    `json:"tokens"`
}

// kept returns how many tokens at the prompt's beginning are the same as in the prompt before. broke reports whether a
// message of that prompt changed or left, so that a provider's cache of it is of no use from there on. kept remembers
// the prompt for the next call.
func (r *Replaying) kept() (tokens int, broke bool) {
	shown := r.shown()
	same := 0
	for same < min(len(shown), len(r.before)) && shown[same].Sum == r.before[same].Sum {
		tokens += shown[same].Tokens
		same++
	}
	broke = same < len(r.before)
	if len(r.before) > 0 {
		tokens += r.session.fixed
	}
	r.before = shown
	return tokens, broke
}

// shown returns the view's messages as shown, the summary first.
func (r *Replaying) shown() (all []shownMessage) {
	edited := map[int]bool{}
	for _, e := range r.view.Edits {
		edited[e.Position] = true
	}
	tokens := clip.ShownTokens(r.view)
	messages := r.view.AsShown()
	if n := len(messages) - len(r.view.Messages); n > 0 {
		all = append(all, shownMessage{sumOf(messages[0]), plan.FixedTokens(r.view) - r.view.Fixed})
		messages = messages[n:]
	}
	for i, m := range messages {
		sum, known := r.sums[m.Position]
		if !known || edited[m.Position] {
			sum = sumOf(m)
		}
		if !edited[m.Position] {
			r.sums[m.Position] = sum
		}
		all = append(all, shownMessage{sum, tokens[i]})
	}
	return all
}

// sumOf returns a hash of what a message shows.
func sumOf(m recall.Message) uint64 {
	h := fnv.New64a()
	for _, p := range m.Content {
		for _, text := range []string{p.Text, p.Name, p.Input, "\x00"} {
			_, _ = io.WriteString(h, text) // writing to a hash does not fail
		}
	}
	return h.Sum64()
}
