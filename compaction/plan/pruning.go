package plan

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall"
)

// Pruned is the trigger of a change that only shows less of some messages: a policy made it before a prompt.
const Pruned = "prune"

// Pruning is what a policy shows less of in a view.
type Pruning struct {
	Policy string      // its name
	Mode   Mode        // of the conversation's settings
	Edits  []clip.Edit // that are new, or replace others of the same parts
	Before clip.View
	After  clip.View // Before with the edits
	Asked  Asked     // of a model, for lines instead of results
}

// Asked is what a model was asked for, and what that took.
type Asked struct {
	Calls                      int
	PromptTokens, OutputTokens int // as the provider counted
}

// StepCount is what the edits of a step did.
type StepCount struct {
	Step   string `json:"step"`
	Edits  int    `json:"edits"`
	Tokens int    `json:"tokens_saved"`
}

// Steps counts the edits by step, in the order of their first ones.
func (p Pruning) Steps() []StepCount {
	messages := make(map[int]recall.Message, len(p.Before.Messages))
	for _, m := range p.Before.Messages {
		messages[m.Position] = m
	}
	was := make(map[clip.Place]clip.Edit, len(p.Before.Edits))
	for _, e := range p.Before.Edits {
		was[clip.Place{Message: e.Position, Part: e.Part}] = e
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
		if old, ok := was[clip.Place{Message: e.Position, Part: e.Part}]; ok {
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

// VisibleTokens returns the tokens of the messages of the view and of its summary.
func VisibleTokens(v clip.View) int {
	n := 0
	if v.Summary != nil {
		n = v.Summary.Tokens
	}
	for _, tokens := range clip.ShownTokens(v) {
		n = ratio.Add(n, tokens)
	}
	return n
}
