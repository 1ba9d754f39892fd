package plan

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
)

// Pruned is the recorded trigger of a change in which a policy only shows less of some messages before a prompt.
const Pruned = "prune"

// Pruning is a change in which a policy shows less of a view.
type Pruning struct {
	Policy string      // the policy's name
	Mode   Mode        // the mode in the conversation's settings
	Edits  []clip.Edit // new edits, including replacements of old ones
	Before clip.View
	After  clip.View // Before with the edits
	Asked  Asked     // requests to models for lines that replace results
}

// Asked is the work of models for a Pruning.
type Asked struct {
	Calls                      int
	PromptTokens, OutputTokens int // by the provider's count

	Why string // why rules wrote lines although there is a model; empty if none failed
}

// StepCount is the effect of one step's edits.
type StepCount struct {
	Step   string `json:"step"`
	Edits  int    `json:"edits"`
	Tokens int    `json:"tokens_saved"`
}

// Steps returns a StepCount per step, in the order of each step's first edit.
func (p Pruning) Steps() []StepCount {
	messages := make(map[int]recall.Message, len(p.Before.Messages))
	for _, m := range p.Before.Messages {
		messages[m.Position] = m
	}
	before := make(map[clip.Place]clip.Edit, len(p.Before.Edits))
	for _, e := range p.Before.Edits {
		before[clip.Place{Message: e.Position, Part: e.Part}] = e
	}
	var counts []StepCount
	for _, e := range p.Edits {
		i := slices.IndexFunc(counts, func(c StepCount) bool { return c.Step == e.Step })
		if i < 0 {
			i = len(counts)
			counts = append(counts, StepCount{Step: e.Step})
		}
		m := messages[e.Position]
		saved := p.Before.EditSaves(m, e)
		if old, ok := before[clip.Place{Message: e.Position, Part: e.Part}]; ok {
			saved -= p.Before.EditSaves(m, old)
		}
		counts[i].Edits++
		counts[i].Tokens += saved
	}
	return counts
}

// Worthwhile reports whether the edits save tokens.
func (p Pruning) Worthwhile() bool {
	saved := 0
	for _, c := range p.Steps() {
		saved += c.Tokens
	}
	return len(p.Edits) > 0 && saved > 0
}

// VisibleTokens returns the tokens of the view's messages and summary.
func VisibleTokens(v clip.View) int {
	n := 0
	if v.Summary != nil {
		n = v.Summary.Tokens
	}
	for _, tokens := range clip.ShownTokens(v) {
		n = tokenmath.Add(n, tokens)
	}
	return n
}
