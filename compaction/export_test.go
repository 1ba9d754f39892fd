package compaction

import "github.com/loci-memory/loci/recall"

// Identifiers is what tests look for.
func Identifiers(text string) []string { return identifiers(text) }

// Transcript is what a summariser reads.
func Transcript(messages []recall.Message, clamp bool) string {
	return joined(transcript(messages, clamp))
}
