package summary

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// leastSplit is the smallest budget in tokens that two summaries are made from.
const leastSplit = 4 * plan.MinBudget

// splitShare is the share of the budget that the beginning of the divided turn gets.
const splitShare = 0.4

// divided returns what leaves in two: the history, and the beginning of the turn that the cut divides; ok is false if
// one summary is made of both.
func divided(e clip.Evicted) (history, turn clip.Evicted, ok bool) {
	at := slices.IndexFunc(e.Messages, func(m recall.Message) bool { return m.Position >= e.Split })
	if e.Split == 0 || at < 0 || e.Budget < leastSplit || e.Self != nil {
		return e, e, false
	}
	room := e.Budget - tokens.Estimate(prose.SplitTurn) - 2
	history, turn = e, e
	history.Split, turn.Split = 0, 0
	history.Messages, history.Budget = e.Messages[:at], room-int(splitShare*float64(room))
	turn.Messages, turn.Previous, turn.Format = e.Messages[at:], nil, prose.SplitFormat
	turn.Budget = int(splitShare * float64(room))
	return history, turn, true
}
