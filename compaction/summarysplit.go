package compaction

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// splitFormat is that of the beginning of a turn that a cut divides.
var splitFormat = &Format{Sections: []FormatSection{
	{"## Original Request", "What the user asked for in this turn.", []string{"requests", "told"}},
	{"## Early Progress", "What was decided and done in the part of the turn that is hidden.",
		[]string{"decisions", "findings", "state"}},
	{"## Context for Suffix", "What one must know to understand the part of the turn that stays visible.",
		[]string{"open"}},
}}

// The texts that join the summaries of a divided turn.
const (
	noHistory  = "No prior history."
	splitRule  = "---"
	splitTitle = "**Turn Context (split turn):**"
	splitTurn  = "\n\n" + splitRule + "\n\n" + splitTitle + "\n\n"
)

// leastSplit is the smallest budget in tokens that two summaries are made from.
const leastSplit = 4 * MinBudget

// splitShare is the share of the budget that the beginning of the divided turn gets.
const splitShare = 0.4

// divided returns what leaves in two: the history, and the beginning of the turn that the cut divides; ok is false if
// one summary is made of both.
func (e Evicted) divided() (history, turn Evicted, ok bool) {
	at := slices.IndexFunc(e.Messages, func(m recall.Message) bool { return m.Position >= e.Split })
	if e.Split == 0 || at < 0 || e.Budget < leastSplit || e.Self != nil {
		return e, e, false
	}
	room := e.Budget - tokens.Estimate(splitTurn) - 2
	history, turn = e, e
	history.Split, turn.Split = 0, 0
	history.Messages, history.Budget = e.Messages[:at], room-int(splitShare*float64(room))
	turn.Messages, turn.Previous, turn.Format = e.Messages[at:], nil, splitFormat
	turn.Budget = int(splitShare * float64(room))
	return history, turn, true
}

// summarizeDivided makes a summary of the history and one of the beginning of a turn, and joins them.
func summarizeDivided(ctx context.Context, history, turn Evicted, s Settings, m *Model) (Summary, error) {
	before := Summary{Text: noHistory, From: turn.Messages[0].Position, FromSeq: turn.Messages[0].Seq}
	var err error
	if len(history.Messages) > 0 || history.Previous != nil {
		if before, err = Summarize(ctx, history, s, m); err != nil {
			return before, err
		}
	}
	after, err := Summarize(ctx, turn, s, m)
	if err != nil {
		return after, err
	}
	after.Text = before.Text + splitTurn + after.Text
	after.From, after.FromSeq = min(before.From, after.From), min(before.FromSeq, after.FromSeq)
	after.To, after.ToSeq = max(before.To, after.To), max(before.ToSeq, after.ToSeq)
	if before.ModelCalls > 0 && before.How != Extracted { // else it repeats an earlier summary, or is empty
		after.How, after.Model = before.How, before.Model
	}
	after.ModelCalls += before.ModelCalls
	after.PromptTokens += before.PromptTokens
	after.OutputTokens += before.OutputTokens
	after.Why, after.Detail = cmp.Or(after.Why, before.Why), cmp.Or(after.Detail, before.Detail)
	after.Before, after.After = before.Before, before.After
	if f := history.Format; f != nil {
		after.Before, after.After = f.Before, f.After
	}
	after.Text = limitChars(after.Text, s.ClipChars)
	after.Tokens = SummaryTokens(after)
	return after, nil
}
