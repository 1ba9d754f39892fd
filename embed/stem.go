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
	name *term // of a stop word: the term that it is as a name
}

// memo caches the terms of recent words: most words of a text repeat, and stemming costs ten times a lookup. Words that
// share a slot replace each other, so the cache is bounded and needs no lock.
var (
	memo     [1 << 16]atomic.Pointer[term]
	memoSeed = maphash.MakeSeed()
)

func lookup(word string) *term {
	word = opening(word, maxTermRunes)
	slot := &memo[maphash.String(memoSeed, word)%uint64(len(memo))]
	if t := slot.Load(); t != nil && t.word == word {
		return t
	}
	t := newTerm(strings.Clone(word))
	slot.Store(t)
	return t
}

func newTerm(word string) *term {
	text := strings.ToLower(word)
	if stopwords[text] {
		return &term{word: word, name: &term{word: word, text: text, id: idOf(text)}}
	}
	if base, ok := irregular[text]; ok {
		text = base
	}
	text = english.Stem(text, true)
	return &term{word: word, text: text, id: idOf(text)}
}

func idOf(text string) int32 { return int32(crc32.ChecksumIEEE([]byte(text)) % Lexicon) }
