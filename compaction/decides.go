package compaction

import "slices"

// Decides reports whether a sentence of a text has words of a decision.
func Decides(text string) bool {
	return slices.ContainsFunc(sentences(text), func(s string) bool { return sentenceOf(s).is(deciding) })
}
