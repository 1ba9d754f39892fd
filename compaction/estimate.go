package compaction

import (
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Estimate returns how many tokens a view takes: a provider's count of the prompt, and ours of the messages after it;
// without a provider's count, ours of all that is sent. A clipped result counts as it is shown.
func Estimate(v View) int { return estimate(v, shownTokens(v)) }

func estimate(v View, shown []int) int {
	if !v.reported() {
		return counted(v, shown)
	}
	n := v.Usage.PromptTokens
	for i, tokens := range shown {
		if v.Messages[i].Position > v.Usage.Position {
			n = add(n, tokens)
		}
	}
	return n
}

// counted counts a view without a provider's report.
func counted(v View, shown []int) int {
	n := add(v.Fixed, v.summaryTokens(v.summaryClip()))
	for _, tokens := range shown {
		n = add(n, tokens)
	}
	return n
}

// ShownTokens returns the tokens of each message of a view as it is shown, as Loci counts them.
func ShownTokens(v View) []int { return shownTokens(v) }

// shownTokens returns the tokens of each message as it is shown.
func shownTokens(v View) []int {
	clips := editsByPosition(v.Edits)
	tokens := make([]int, len(v.Messages))
	for i, m := range v.Messages {
		tokens[i] = max(m.Tokens, 0)
		for _, c := range clips[m.Position] {
			tokens[i] = max(tokens[i]-v.editSaves(m, c), 0)
		}
	}
	return tokens
}

func (v View) count(text string) int {
	if v.Count == nil {
		return tokens.Estimate(text)
	}
	return v.Count(text)
}

func (v View) editSaves(m recall.Message, c Edit) int {
	if !isEditOf(c, m) {
		return 0
	}
	return v.wholeTokens(m, c.Part) - v.editedTokens(m, c)
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
	if !isEditOf(now, m) || was != nil && !now.ShowsNoMoreThan(*was) {
		return now, 0
	}
	takes := v.editedTokens(m, now)
	if v.Count == nil {
		now.Tokens = takes
	}
	return now, v.PartTokens(m, now.Part, was) - takes
}

// PartTokens returns the tokens of a part of one of the view's messages as it is shown with an edit, nil for none.
func (v View) PartTokens(m recall.Message, part int, e *Edit) int {
	if e != nil && isEditOf(*e, m) {
		return v.editedTokens(m, *e)
	}
	return v.wholeTokens(m, part)
}

// CountText returns the tokens of a text as the view counts them.
func (v View) CountText(text string) int { return v.count(text) }

// wholeTokens returns the tokens of a part that is shown whole. Those of the only part of a message are known.
func (v View) wholeTokens(m recall.Message, part int) int {
	p := m.Content[part]
	if len(m.Content) == 1 && m.Tokens > tokens.PerMessage && len(p.Stdout)+len(p.Stderr) == 0 {
		return m.Tokens - tokens.PerMessage
	}
	return v.partTokens(p)
}

func (v View) editedTokens(m recall.Message, c Edit) int {
	if c.Tokens > 0 && v.Count == nil {
		return c.Tokens
	}
	return v.partTokens(editedPart(v.Messages, m, c, v.Has))
}

func (v View) partTokens(p recall.Part) int {
	n := v.count(p.Text) + v.count(p.Name) + v.count(p.Input) + p.SealedTokens() + len(p.Images)*tokens.PerImage
	if p.Type == recall.Image {
		n += tokens.PerImage
	}
	return n
}

// summaryTokens returns the tokens of the summary, clipped if clip is not nil; 0 if there is none.
func (v View) summaryTokens(clip *Edit) int {
	if v.Summary == nil {
		return 0
	}
	n := max(v.Summary.Tokens, 0)
	if clip != nil {
		head, note := clippedSummary(v.Summary.Text, *clip)
		n = max(n-v.count(v.Summary.Text)+v.count(head+note), 0)
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
