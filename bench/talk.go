package main

import (
	"math/rand/v2"
	"strings"
)

// talk generates sentences.
type talk struct {
	words []string
	rand  *rand.Rand
	zipf  *rand.Zipf
}

func (b *bench) newTalk() *talk {
	t := &talk{words: b.corpus.words, rand: rand.New(rand.NewPCG(3, 3))}
	t.zipf = rand.NewZipf(t.rand, zipfS, zipfV, vocabulary-1)
	return t
}

func (t *talk) sentence() string {
	words := make([]string, 6+t.rand.IntN(14))
	for i := range words {
		words[i] = t.words[t.zipf.Uint64()]
	}
	return strings.Join(words, " ")
}
