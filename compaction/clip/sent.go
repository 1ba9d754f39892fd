package clip

import "github.com/loci-memory/loci/recall"

// AsShown returns all messages of the view as the model reads them: the summary's message first, if there is one, and
// tool results clipped.
func (v View) AsShown() []recall.Message {
	shown := shownWith(v.Has.For(v.Messages), v.Edits, v.Has)
	if v.Summary == nil {
		return shown
	}
	summary := recall.Message{Role: recall.Summary,
		Content: []recall.Part{{Type: recall.Text, Text: v.SummaryText()}}}
	return append([]recall.Message{summary}, shown...)
}

// Open reports whether the last call of a tool still waits for its result.
func (v View) Open() bool { return CutPointsOf(v.Messages).OpenCall < len(v.Messages) }

// Unanswered returns the indexes of the first message of the newest step, if it calls tools and no answer of the model
// follows, and of the first message after its results. They are the same if the model has answered all results.
func (v View) Unanswered() (from, to int) {
	points := CutPointsOf(v.Messages)
	return points.Unseen, points.Seen
}

// Reported reports whether a provider counted the beginning of the view.
func (v View) Reported() bool { return v.Usage != nil && v.Usage.PromptTokens > 0 }

// SentMessages counts the messages that a model is sent, including the system prompt and the summary.
func (v View) SentMessages() int {
	n := 1 + len(v.Messages)
	if v.Summary != nil {
		n++
	}
	return n
}
