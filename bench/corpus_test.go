package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTheSameSeedMakesTheSameDocuments(t *testing.T) {
	t.Parallel()
	code, err := goSources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const size = 256 << 10
	hidden := []needle{{"Obsidian weathervane", 7}, {"jzq7", 20}}
	makeDocuments := func(seed uint64) map[string]string {
		dir := filepath.Join(t.TempDir(), "documents")
		list, err := newCorpus(code).write(dir, size, seed, hidden...)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, d := range list {
			text, err := os.ReadFile(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(text)) != d.Bytes {
				t.Errorf("%s has %d bytes, want %d as its document says", d.Path, len(text), d.Bytes)
			}
			texts[filepath.Base(d.Path)] = string(text)
		}
		return texts
	}
	first, again, other := makeDocuments(1), makeDocuments(1), makeDocuments(2)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error("the same seed made other documents")
	}
	if cmp.Equal(first, other) {
		t.Error("another seed made the same documents")
	}
	var all bytes.Buffer
	for name, text := range first {
		if !utf8.ValidString(text) || bytes.IndexByte([]byte(text), 0) >= 0 {
			t.Errorf("%s is not a text", name)
		}
		all.WriteString(text)
	}
	if all.Len() < size {
		t.Errorf("%d bytes were made, want at least %d", all.Len(), size)
	}
	for _, n := range hidden {
		if got := bytes.Count(all.Bytes(), []byte(n.text)); got != n.times {
			t.Errorf("%q is there %d times, want %d", n.text, got, n.times)
		}
	}
}

func TestQueriesAreTheSameEachTimeAndOfTheVocabulary(t *testing.T) {
	t.Parallel()
	c := newCorpus(nil)
	known := map[string]bool{}
	for _, w := range c.words {
		known[w] = true
	}
	if len(known) != vocabulary {
		t.Errorf("the vocabulary has %d different words, want %d", len(known), vocabulary)
	}
	queries := c.queries(20)
	if diff := cmp.Diff(newCorpus(nil).queries(20), queries); diff != "" {
		t.Errorf("another corpus asks other queries:\n%s", diff)
	}
	for _, q := range queries {
		words := strings.Fields(q)
		if len(words) < 3 || len(words) > 6 || slices.ContainsFunc(words, func(w string) bool { return !known[w] }) {
			t.Errorf("%q is not of 3 to 6 words of the vocabulary", q)
		}
	}
}
