package clip

import (
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Estimate returns how many tokens a view takes: a provider's count of the prompt, and ours of the messages after it;
// without a provider's count, ours of all that is sent. A clipped result counts as it is shown.
func Estimate(v View) int { return EstimateShown(v, ShownTokens(v)) }

// EstimateShown is Estimate of a view whose messages, as they are shown, have the given tokens.
func EstimateShown(v View, shown []int) int {
	if !v.Reported() {
		return counted(v, shown)
	}
	n := v.Usage.PromptTokens
	for i, tokens := range shown {
		if v.Messages[i].Position > v.Usage.Position {
			n = ratio.Add(n, tokens)
		}
	}
	return n
}

// Counted counts a view without a provider's report.
func Counted(v View) int { return counted(v, ShownTokens(v)) }

// counted is Counted of a view whose messages, as they are shown, have the given tokens.
func counted(v View, shown []int) int {
	n := ratio.Add(v.Fixed, v.SummaryTokens(v.SummaryClip()))
	for _, tokens := range shown {
		n = ratio.Add(n, tokens)
	}
	return n
}

// ShownTokens returns the tokens of each message of a view as it is shown, as Loci counts them.
func ShownTokens(v View) []int {
	clips := EditsByPosition(v.Edits)
	tokens := make([]int, len(v.Messages))
	for i, m := range v.Messages {
		tokens[i] = max(m.Tokens, 0)
		for _, c := range clips[m.Position] {
			tokens[i] = max(tokens[i]-v.EditSaves(m, c), 0)
		}
	}
	return tokens
}

// CountText returns the tokens of a text as the view counts them.
func (v View) CountText(text string) int {
	if v.Count == nil {
		return tokens.Estimate(text)
	}
	return v.Count(text)
}

// EditSaves returns the tokens that an edit saves of a message; 0 if the message may not have it.
func (v View) EditSaves(m recall.Message, c Edit) int {
	if !IsEditOf(c, m) {
		return 0
	}
	return v.wholeTokens(m, c.Part) - v.EditedTokens(m, c)
}

// Saves returns the tokens that an edit of a part of one of the view's messages saves, compared with another edit of
// that part, or if was is nil with the whole part. It is 0 of an edit that the part may not have, and of one that shows
// more than the other.
func (v View) Saves(m recall.Message, was *Edit, now Edit) int {
	_, saves := v.Weighed(m, was, now)
	return saves
}

// Weighed returns an edit with the tokens that the part takes with it, and what it saves, as Saves says.
func (v View) Weighed(m recall.Message, was *Edit, now Edit) (Edit, int) {
	if !IsEditOf(now, m) || was != nil && !now.ShowsNoMoreThan(*was) {
		return now, 0
	}
	takes := v.EditedTokens(m, now)
	if v.Count == nil {
		now.Tokens = takes
	}
	return now, v.PartTokens(m, now.Part, was) - takes
}

// PartTokens returns the tokens of a part of one of the view's messages as it is shown with an edit, nil for none.
func (v View) PartTokens(m recall.Message, part int, e *Edit) int {
	if e != nil && IsEditOf(*e, m) {
		return v.EditedTokens(m, *e)
	}
	return v.wholeTokens(m, part)
}

// wholeTokens returns the tokens of a part that is shown whole. Those of the only part of a message are known.
func (v View) wholeTokens(m recall.Message, part int) int {
	p := m.Content[part]
	if len(m.Content) == 1 && m.Tokens > tokens.PerMessage && len(p.Stdout)+len(p.Stderr) == 0 {
		return m.Tokens - tokens.PerMessage
	}
	return v.WholePartTokens(p)
}

// EditedTokens returns the tokens of a part as an edit shows it.
func (v View) EditedTokens(m recall.Message, c Edit) int {
	if c.Tokens > 0 && v.Count == nil {
		return c.Tokens
	}
	return v.WholePartTokens(editedPart(v.Messages, m, c, v.Has))
}

// WholePartTokens counts a part that is shown whole.
func (v View) WholePartTokens(p recall.Part) int {
	n := v.CountText(p.Text) + v.CountText(p.Name) + v.CountText(p.Input) + p.SealedTokens() +
		len(p.Images)*tokens.PerImage
	if p.Type == recall.Image {
		n += tokens.PerImage
	}
	return n
}

// SummaryTokens returns the tokens of the summary, clipped if clip is not nil; 0 if there is none.
func (v View) SummaryTokens(clip *Edit) int {
	if v.Summary == nil {
		return 0
	}
	n := max(v.Summary.Tokens, 0)
	if clip != nil {
		head, note := clippedSummary(v.Summary.Text, *clip)
		n = max(n-v.CountText(v.Summary.Text)+v.CountText(head+note), 0)
	}
	return n
}

// Crowding returns by how many tokens the fixed parts of a prompt exceed three quarters of the window, which leaves
// messages less than a quarter; 0 if they do not, or if the window is unknown.
func Crowding(fixed, window int) int {
	if window <= 0 {
		return 0
	}
	return max(fixed-(window-window/4), 0)
}
