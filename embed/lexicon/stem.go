package lexicon

import (
	"hash/crc32"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/kljensen/snowball/english"
)

// Term is a word as it is indexed. Stop words have an empty text.
type Term struct {
	Word string // as written
	Text string
	ID   int32 // in the lexicon
	name *Term // for a stop word: its term as a name
	also *Term // for a word with ä, ö or ü: the term of its spelling with ae, oe or ue
}

// memo caches the terms of recent words: most words of a text repeat, and stemming costs ten times a lookup. Words in
// the same slot replace each other, so the cache is bounded and needs no lock.
var (
	memo     [1 << 16]atomic.Pointer[Term]
	memoSeed = maphash.MakeSeed()
)

func lookup(word string) *Term {
	word = Opening(word, maxTermRunes)
	slot := &memo[maphash.String(memoSeed, word)%uint64(len(memo))]
	if t := slot.Load(); t != nil && t.Word == word {
		return t
	}
	t := newTerm(strings.Clone(word))
	slot.Store(t)
	return t
}

func newTerm(word string) *Term {
	text := strings.ToLower(word)
	if stopwords[text] {
		return &Term{Word: word, name: &Term{Word: word, Text: text, ID: idOf(text)}}
	}
	t := TermOf(word, withoutUmlauts.Replace(text))
	if spelled := spelledUmlauts.Replace(text); spelled != text {
		t.also = TermOf(spelled, spelled)
	}
	return t
}

var (
	withoutUmlauts = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u")
	spelledUmlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")
)

// TermOf returns the term of a word. text is the word in lower case.
func TermOf(word, text string) *Term {
	if base, ok := irregular[text]; ok {
		text = base
	}
	text = stem(text)
	if base, ok := families[text]; ok {
		text = base
	}
	return &Term{Word: word, Text: text, ID: idOf(text)}
}

// stem returns the stem of a word. If the stem is itself a word with an ending of two or more letters, it returns the
// stem of that word: experimentation becomes experiment, and then experi. A single letter, like the s of pars, is no
// ending.
func stem(text string) string {
	stemmed := english.Stem(text, true)
	if again := english.Stem(stemmed, true); len(again)+1 < len(stemmed) {
		return again
	}
	return stemmed
}

func idOf(text string) int32 { return int32(crc32.ChecksumIEEE([]byte(text)) % Lexicon) }

// maxTermRunes is how many characters of a word are kept. So a megabyte without a space costs one short term.
const maxTermRunes = 64

// Opening returns the first chars characters of a text.
func Opening(text string, chars int) string {
	if len(text) <= chars {
		return text
	}
	n := 0
	for end := range text {
		if n == chars {
			return text[:end]
		}
		n++
	}
	return text
}
