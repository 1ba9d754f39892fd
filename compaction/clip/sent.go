package clip

import "github.com/loci-memory/loci/recall"

// AsShown returns all messages of the view as the model reads them: first the summary's message, if there is one; tool
// results clipped.
func (v View) AsShown() []recall.Message {
	shown := shownWith(v.Has.For(v.Messages), v.Edits, v.Has)
	if v.Summary == nil {
		return shown
	}
	summary := recall.Message{Role: recall.Summary,
		Content: []recall.Part{{Type: recall.Text, Text: v.SummaryText()}}}
	return append([]recall.Message{summary}, shown...)
}

// Open reports whether the newest step has a tool call that still waits for its result.
func (v View) Open() bool { return CutPointsOf(v.Messages).OpenCall < len(v.Messages) }

// Unanswered returns the range of the newest step if it calls tools and the model has not answered yet: the index of
// its first message, and the index behind its results. Both are the same if the model has answered all results.
func (v View) Unanswered() (from, to int) {
	points := CutPointsOf(v.Messages)
	return points.Unseen, points.Seen
}

// Reported reports whether a provider has counted the beginning of the view.
func (v View) Reported() bool { return v.Usage != nil && v.Usage.PromptTokens > 0 }

// SentMessages counts the messages that a model is sent, including the system prompt and the summary.
func (v View) SentMessages() int {
	n := 1 + len(v.Messages)
	if v.Summary != nil {
		n++
	}
	return n
}
