// Package summary writes the summary of messages that leave a view. A model writes it, and it is checked; without a
// model it is extracted from the messages.
//
// Each file uses those that are named before it:
//   - a summary that no model writes: summarizer.go section.go layout.go extraction.go resultlines.go extractresult.go
//     correction.go extract.go extractbudget.go sectionfill.go
//   - a summary that a model writes: writer.go calledfile.go prompt.go appendix.go usermessages.go repair.go accept.go
//     calls.go attempt.go stages.go unwritten.go split.go summary.go
package summary

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// Summarize makes the summary that replaces the evicted messages. It fails only if ctx ends: if m is nil, down, slow,
// too small for the transcript, or writes nonsense, the summary is extracted. A summary is valid UTF-8, names
// everything that the last request named, and keeps to the settings' clip_chars and to the budget of e (at least
// MinBudget). If no message says anything, no model is asked, and the summary is the previous one.
func Summarize(ctx context.Context, e clip.Evicted, s plan.Settings, m *Model) (clip.Summary, error) {
	if history, turn, ok := divided(e, m != nil); ok {
		return summarizeDivided(ctx, history, turn, s, m)
	}
	w := newWriter(e, s, m)
	switch {
	case len(e.Messages) == 0:
	case e.Hidden:
		return w.hidden(), ctx.Err()
	case e.Notes != "":
		return w.fromNotes(), ctx.Err()
	}
	if len(w.entries) == 0 {
		return w.nothing(), ctx.Err()
	}
	if m == nil {
		w.why = "no model is configured on the server that made it"
		return w.extracted(), ctx.Err()
	}
	patience := m.Patience
	if patience == 0 {
		patience = Patience
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, how, ok := w.ask(limited)
	if ctx.Err() != nil {
		return clip.Summary{}, ctx.Err()
	}
	if !ok {
		if limited.Err() != nil {
			w.why = fmt.Sprintf("the model took longer than %v", patience)
		}
		return w.extracted(), nil
	}
	return w.summary(frame.Restore(text), how), nil
}

func newWriter(e clip.Evicted, s plan.Settings, m *Model) *writer {
	w := &writer{e: e, s: s, m: m, scale: margin, sent: math.MaxInt, entries: prose.Transcript(e.Messages, false),
		maxCalls: MaxModelCalls}
	replaced := prose.TokensIn(w.entries)
	if logged := 0; len(e.Messages) > 0 {
		for _, m := range e.Messages {
			logged += max(m.Tokens, 0)
		}
		replaced = max(replaced, logged)
	}
	if e.Previous != nil {
		w.previous = strings.TrimSpace(prose.Clean(e.Previous.Text))
		replaced += tokens.Estimate(w.previous)
	}
	w.reserve()
	w.budget = min(e.Budget-w.reserved, replaced-1)
	if s.ClipChars != nil {
		w.budget = min(w.budget, *s.ClipChars/4)
	}
	if f := e.Format; f != nil && f.ByModel > 0 && m != nil {
		w.budget = min(w.budget, f.ByModel)
	}
	w.budget = max(w.budget, plan.MinBudget)
	w.must = prose.MustMentionOf(e.Messages, prose.Appended.ReplaceAllString(w.previous, ""), w.budget)
	if m != nil {
		w.window = max(m.Window, 0)
	}
	return w
}

// ask tries one way after the other until an answer is accepted.
func (w *writer) ask(ctx context.Context) (text string, how clip.How, ok bool) {
	if w.e.Self != nil {
		messages := w.selfRequest()
		text, next := w.try(ctx, messages, w.e.Self.Tools, true)
		if !next {
			return text, clip.Own, text != ""
		}
		if ctx.Err() != nil {
			return "", "", false
		}
	}
	for _, stage := range w.stages() {
		w.cut = nil
		if stage.how == Staged {
			if text, ok := w.staged(ctx, stage.parts); ok {
				return text, Staged, true
			}
			continue
		}
		messages := stage.make()
		if messages == nil {
			continue
		}
		text, next := w.try(ctx, messages, nil, false)
		if !next {
			w.saysWhatIsCut()
			return text, stage.how, text != ""
		}
	}
	return "", "", false
}

// saysWhatIsCut adds to the summary's Why that the model was not shown all messages.
func (w *writer) saysWhatIsCut() {
	if n := len(w.cut); n > 0 && w.why == "" {
		all := len(w.e.Messages)
		w.why = fmt.Sprintf("the model was shown %d of the %d messages: the others did not fit its window", all-n, all)
	}
}

// stages returns the ways of asking a model other than the agent's own, in order.
func (w *writer) stages() []stage {
	whole, clamped := stage{how: clip.Whole, make: w.whole}, stage{how: clip.Clamped, make: w.clampedTranscript}
	f := w.e.Format
	if f != nil && f.HeadDrop {
		return append([]stage{whole, clamped},
			slices.Repeat([]stage{{how: clip.Middle, make: w.headDropped}}, maxHeadDrops)...)
	}
	middle := stage{how: clip.Middle, make: w.middle}
	if f != nil && f.Staged {
		return []stage{whole, {how: Staged, parts: MaxParts}, clamped, middle}
	}
	return []stage{whole, clamped, {how: Staged, parts: fewParts}, middle}
}

// summarizeDivided summarizes the history and the beginning of a turn separately, and joins the two summaries.
func summarizeDivided(ctx context.Context, history, turn clip.Evicted, s plan.Settings, m *Model) (
	clip.Summary, error) {
	before := clip.Summary{Text: prose.NoHistory, From: turn.Messages[0].Position, FromSeq: turn.Messages[0].Seq}
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
	after.Text = before.Text + prose.SplitTurn + after.Text
	after.From, after.FromSeq = min(before.From, after.From), min(before.FromSeq, after.FromSeq)
	after.To, after.ToSeq = max(before.To, after.To), max(before.ToSeq, after.ToSeq)
	if before.ModelCalls > 0 && before.How != clip.Extracted { // otherwise it repeats an earlier summary, or is empty
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
	after.Text = prose.LimitChars(after.Text, s.ClipChars)
	after.Tokens = clip.SummaryTokens(after)
	return after, nil
}
