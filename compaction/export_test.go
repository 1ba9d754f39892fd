package compaction

import "github.com/loci-memory/loci/recall"

// Transcript is what a summariser reads.
func Transcript(messages []recall.Message, clamp bool) string {
	return joined(transcript(messages, clamp))
}

// Count is a view counted without a provider's report.
func Count(v View) int { return counted(v, shownTokens(v)) }

// Compacted is what is remembered once a compaction is committed that left so many tokens.
func (s TriggerState) Compacted(after int) TriggerState {
	s.Disarmed, s.Base = true, after
	return s
}

// LeastSummary bounds the tokens of the message of the shortest summary.
const LeastSummary = leastSummary

// Sentences is how a text is split for an extracted summary.
func Sentences(text string) []string { return sentences(text) }

// MaxParts bounds the parts of a summary in stages.
const MaxParts = maxParts

// StringLiterals are stringLiterals.
var StringLiterals = stringLiterals
