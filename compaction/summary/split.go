package summary

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// leastSplit is the smallest budget in tokens for two summaries; leastExtracted is that without a model, because two
// lists of lines have room for fewer lines than one.
const (
	leastSplit     = 4 * plan.MinBudget
	leastExtracted = 8 * leastSplit
)

// splitShare is the share of the budget for the beginning of the divided turn.
const splitShare = 0.4

// divided splits the evicted messages at the start of the turn that the cut divides: into the history, and the
// beginning of that turn. ok is false if a single summary covers both.
func divided(e clip.Evicted, byModel bool) (history, turn clip.Evicted, ok bool) {
	least := leastExtracted
	if byModel {
		least = leastSplit
	}
	cut := slices.IndexFunc(e.Messages, func(m recall.Message) bool { return m.Position >= e.Split })
	if e.Split == 0 || cut < 0 || e.Budget < least || e.Self != nil {
		return e, e, false
	}
	room := e.Budget - tokens.Estimate(prose.SplitTurn) - 2
	history, turn = e, e
	history.Split, turn.Split = 0, 0
	history.Messages, history.Budget = e.Messages[:cut], room-int(splitShare*float64(room))
	turn.Messages, turn.Previous, turn.Format = e.Messages[cut:], nil, prose.SplitFormat
	turn.Budget = int(splitShare * float64(room))
	switch {
	case e.Format == nil || !e.Format.Files:
	case len(history.Messages) > 0 || history.Previous != nil: // the lists of files are of both
		history.Calls = slices.Clone(e.Calls)
		for _, m := range turn.Messages {
			history.Calls = append(history.Calls, m.Content...)
		}
	default:
		withFiles := *prose.SplitFormat
		withFiles.Files = true
		turn.Format = &withFiles
	}
	return history, turn, true
}
