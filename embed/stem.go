package embed

import (
	"hash/crc32"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/kljensen/snowball/english"
)

// term is a word as it is indexed. Stop words have an empty text.
type term struct {
	word string // as written
	text string
	id   int32 // in the lexicon
}

// memo remembers the terms of recent words, for most words of a text were met before and stemming one costs ten times a look here. A
// word has one place, and the last word to claim it holds it: bounded, without locks, and the answer is the same with or without.
var (
	memo     [1 << 16]atomic.Pointer[term]
	memoSeed = maphash.MakeSeed()
)

// lookup returns the term of a word as it is written.
func lookup(word string) *term {
	word = cut(word)
	place := &memo[maphash.String(memoSeed, word)%uint64(len(memo))]
	if t := place.Load(); t != nil && t.word == word {
		return t
	}
	t := newTerm(strings.Clone(word))
	place.Store(t)
	return t
}

func newTerm(word string) *term {
	text := strings.ToLower(word)
	if stopwords[text] {
		return &term{word: word}
	}
	if base, ok := irregular[text]; ok {
		text = base
	}
	text = english.Stem(text, true)
	return &term{word: word, text: text, id: int32(crc32.ChecksumIEEE([]byte(text)) % Lexicon)}
}

// cut drops what is beyond the longest word's length.
func cut(word string) string {
	if len(word) <= maxTermRunes {
		return word
	}
	n := 0
	for i := range word {
		if n == maxTermRunes {
			return word[:i]
		}
		n++
	}
	return word
}
