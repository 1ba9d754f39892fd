package clip

import (
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Estimate returns how many tokens a view takes: a provider's count of the prompt plus our count of the messages after
// it, or our count of everything if there is no provider's count. Clipped results count as shown.
func Estimate(v View) int { return EstimateShown(v, ShownTokens(v)) }

// EstimateShown is Estimate for a view with known tokens of each message, as shown.
func EstimateShown(v View, shown []int) int {
	if !v.Reported() {
		return counted(v, shown)
	}
	n := v.Usage.PromptTokens
	for i, tokens := range shown {
		if v.Messages[i].Position > v.Usage.Position {
			n = tokenmath.Add(n, tokens)
		}
	}
	return n
}

// Counted counts a view without a provider's report.
func Counted(v View) int { return counted(v, ShownTokens(v)) }

// counted is Counted for a view with known tokens of each message, as shown.
func counted(v View, shown []int) int {
	n := tokenmath.Add(v.Fixed, v.SummaryTokens(v.SummaryClip()))
	for _, tokens := range shown {
		n = tokenmath.Add(n, tokens)
	}
	return n
}

// ShownTokens returns the tokens of each message of a view as shown, by Loci's count.
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

// CountText returns the tokens of a text, in the view's count.
func (v View) CountText(text string) int {
	if v.Count == nil {
		return tokens.Estimate(text)
	}
	return v.Count(text)
}

// EditSaves returns the tokens that an edit of a message saves; 0 if the message may not have it.
func (v View) EditSaves(m recall.Message, c Edit) int {
	if !IsEditOf(c, m) {
		return 0
	}
	if c.Kind == Removed && c.Text == "" && len(m.Content) == 1 { // nothing of the message is sent
		return max(m.Tokens, 0)
	}
	return v.wholeTokens(m, c.Part) - v.EditedTokens(m, c)
}

// Saves returns the tokens that edit now saves in place of edit was, or in place of the whole part if was is nil. It is
// 0 if the part may not have the edit, or if the edit shows more than was.
func (v View) Saves(m recall.Message, was *Edit, now Edit) int {
	_, saves := v.Weighed(m, was, now)
	return saves
}

// Weighed returns an edit with its Tokens set, and the tokens that it saves (see Saves).
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

// PartTokens returns the tokens of a part as shown with edit e; nil shows it whole.
func (v View) PartTokens(m recall.Message, part int, e *Edit) int {
	if e != nil && IsEditOf(*e, m) {
		return v.EditedTokens(m, *e)
	}
	return v.wholeTokens(m, part)
}

// wholeTokens returns the tokens of a part shown whole. If it is the message's only part, they are known from the
// message.
func (v View) wholeTokens(m recall.Message, part int) int {
	p := m.Content[part]
	if len(m.Content) == 1 && m.Tokens > tokens.PerMessage && len(p.Stdout)+len(p.Stderr) == 0 {
		return m.Tokens - tokens.PerMessage
	}
	return v.WholePartTokens(p)
}

// EditedTokens returns the tokens of a part as shown with an edit.
func (v View) EditedTokens(m recall.Message, c Edit) int {
	if c.Tokens > 0 && v.Count == nil {
		return c.Tokens
	}
	return v.WholePartTokens(editedPart(v.Messages, m, c, v.Has))
}

// WholePartTokens returns the tokens of a part shown whole.
func (v View) WholePartTokens(p recall.Part) int {
	n := v.CountText(p.Text) + v.CountText(p.Name) + v.CountText(p.Input) + p.SealedTokens() +
		len(p.Images)*tokens.PerImage
	if p.Type == recall.Image {
		n += tokens.PerImage
	}
	return n
}

// SummaryTokens returns the tokens of the summary, clipped if clip is not nil; 0 if there is no summary.
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

// Crowding returns by how many tokens the fixed parts exceed three quarters of the window, so that less than a quarter
// is left for messages; 0 if they do not, or if the window is unknown.
func Crowding(fixed, window int) int {
	if window <= 0 {
		return 0
	}
	return max(fixed-(window-window/4), 0)
}
