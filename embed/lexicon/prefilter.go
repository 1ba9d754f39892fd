package lexicon

import "sync"

// prefilter passes words by their first two letters: those that may have one of the query's terms, and those that may
// be stop words. It is much faster than looking a word up, and stops most words of a text.
type prefilter [pairCount]bool

const pairCount = 26 * 26

// newPrefilter returns the prefilter for terms with the given texts.
func newPrefilter(texts map[string]QueryTerm) *prefilter {
	s := &prefilter{}
	for text := range texts {
		s.add(text)
		for _, beginning := range beginnings()[text] {
			s.add(beginning)
		}
	}
	return s
}

// add lets words pass that begin like text.
func (s *prefilter) add(text string) {
	if len(text) == 1 && isLetter(text[0]) { // aed becomes a
		for second := range byte(26) {
			s[pairOf(text[0], 'a'+second)] = true
		}
	} else if i := pairAt(text); i >= 0 {
		s[i] = true
	}
}

// passes reports whether a word may have one of the terms, or be a stop word.
func (s *prefilter) passes(word string) bool {
	i := pairAt(word)
	return i < 0 || s[i] || len(word) <= int(stopLengths[i])
}

// pairAt returns the number of a text's first two letters. It is negative if the text does not begin with two letters.
func pairAt(text string) int {
	if len(text) < 2 || !isLetter(text[0]) || !isLetter(text[1]) {
		return -1
	}
	return pairOf(text[0], text[1])
}

// pairOf returns the number of two letters in any case.
func pairOf(first, second byte) int { return int(first|0x20-'a')*26 + int(second|0x20-'a') }

// stopLengths maps two letters → length of the longest stop word that begins with them.
var stopLengths = func() (longest [pairCount]uint8) {
	for word := range stopwords {
		if i := pairAt(word); i >= 0 {
			longest[i] = max(longest[i], uint8(len(word))) //nolint:gosec // no stop word has 256 letters
		}
	}
	return longest
}()

// beginnings maps text of a term → words that become it but begin with other letters: of go, went. Only the lists have
// such words. The stemmer keeps the beginning of a word, apart from some words that are in the lists.
var beginnings = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	add := func(word, text string) {
		if pairAt(word) != pairAt(text) {
			all[text] = append(all[text], word)
		}
	}
	for form := range irregular {
		add(form, TermOf(form, form).Text)
	}
	for form, base := range families {
		add(form, base)
	}
	return all
})
