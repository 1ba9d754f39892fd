package prose

import "slices"

// Decides reports whether a sentence of a text has words of a decision.
func Decides(text string) bool {
	return slices.ContainsFunc(Sentences(text), func(s string) bool { return SentenceOf(s).Is(Deciding) })
}
