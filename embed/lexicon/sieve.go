package lexicon

import "sync"

// sieve passes the words that may be of a query's terms, and those that may be stop words, by their first two letters.
// It is much faster than looking a word up, and holds most words of a text back.
type sieve [pairCount]bool

const pairCount = 26 * 26

// newSieve returns the sieve of terms with the given texts.
func newSieve(texts map[string]QueryTerm) *sieve {
	s := &sieve{}
	for text := range texts {
		s.add(text)
		for _, beginning := range beginnings()[text] {
			s.add(beginning)
		}
	}
	return s
}

// add lets words pass that begin as a text does.
func (s *sieve) add(text string) {
	if len(text) == 1 && isLetter(text[0]) { // aed becomes a
		for second := range byte(26) {
			s[pairOf(text[0], 'a'+second)] = true
		}
	} else if i := pairAt(text); i >= 0 {
		s[i] = true
	}
}

// passes reports whether a word may be of one of the terms, or a stop word.
func (s *sieve) passes(word string) bool {
	i := pairAt(word)
	return i < 0 || s[i] || len(word) <= int(stopLengths[i])
}

// pairAt returns the number of the two letters that a text begins with; negative if it begins with something else.
func pairAt(text string) int {
	if len(text) < 2 || !isLetter(text[0]) || !isLetter(text[1]) {
		return -1
	}
	return pairOf(text[0], text[1])
}

// pairOf returns the number of two letters in any case.
func pairOf(first, second byte) int { return int(first|0x20-'a')*26 + int(second|0x20-'a') }

// stopLengths has the length of the longest stop word that begins with two letters.
var stopLengths = func() (longest [pairCount]uint8) {
	for word := range stopwords {
		if i := pairAt(word); i >= 0 {
			longest[i] = max(longest[i], uint8(len(word))) //nolint:gosec // no stop word has 256 letters
		}
	}
	return longest
}()

// beginnings has, by the text of a term, the words that become it and begin with other letters: of go, went. Only the
// lists have such words: the stemmer does not change how a word begins, but for some that are in the lists.
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

// QueryTerm is a term that a query has.
type QueryTerm struct {
	ID     int32
	Weight float32
	Other  bool // in another writing
}
