package lexicon_test

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed/lexicon"
)

// idOf returns the id of a stemmed term.
func idOf(term string) int32 { return int32(crc32.ChecksumIEEE([]byte(term)) & (1<<24 - 1)) }

// weightOf returns the weight of a term in a text, or 0 if the text lacks it.
func weightOf(lex lexicon.Lex, term string) float64 {
	i, ok := slices.BinarySearch(lex.Terms, idOf(term))
	if !ok {
		return 0
	}
	return float64(lex.Vector.Values()[i])
}

func TestDocumentWeights(t *testing.T) {
	t.Parallel()
	filler := func(n int) string { return strings.Repeat("filler ", n) }
	for _, c := range []struct {
		name, text string
		want       float64
	}{
		{"once in a short text", "fox", 2.2 / (1 + 1.2*(0.25+0.75*20/40))},
		{"once at the floor", "fox " + filler(19), 2.2 / (1 + 1.2*(0.25+0.75*20/40))},
		{"once at the pivot", "fox " + filler(39), 1},
		{"three times at the pivot", "fox foxes Fox " + filler(37), 3 * 2.2 / (3 + 1.2)},
		{"once in a long text", "fox " + filler(399), 2.2 / (1 + 1.2*(0.25+0.75*400/40))},
		{"not at all", filler(5), 0},
		{"stop words have no length", "fox " + filler(39) + strings.Repeat("the ", 100), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := weightOf(lexicon.Document("the of and with "+c.text), "fox"); math.Abs(got-c.want) > 1e-6 {
				t.Errorf("got weight %v, want %v", got, c.want)
			}
		})
	}
}

func TestEmptyDocument(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n", "the and of"} {
		lex := lexicon.Document(text)
		if got := lex.Vector.String(); got != "{}/16777216" || lex.Terms == nil || len(lex.Terms) != 0 {
			t.Errorf("%q: got %s and terms %#v, want {}/16777216 and an empty list", text, got, lex.Terms)
		}
	}
}

func TestHeaviestTermsAreKept(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 3 * lexicon.MaxTerms {
		fmt.Fprintf(&text, "w%d ", i)
	}
	for i := range 100 {
		fmt.Fprintf(&text, "often%d often%d ", i, i)
	}
	lex := lexicon.Document(text.String())
	if len(lex.Terms) != lexicon.MaxTerms || len(lex.Vector.Values()) != lexicon.MaxTerms {
		t.Errorf("got %d terms, want %d", len(lex.Terms), lexicon.MaxTerms)
	}
	for i := range 100 {
		if term := fmt.Sprintf("often%d", i); weightOf(lex, term) == 0 {
			t.Errorf("%s comes twice and is not kept", term)
		}
	}
	if !slices.IsSorted(lex.Terms) {
		t.Error("the terms are not in order")
	}
}

func TestDocumentHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-d]{1,3}`)).Draw(t, "words")
		const the = "the of and with " // an English text
		lex := lexicon.Document(the + strings.Join(words, " "))
		if !slices.Equal(lex.Terms, lex.Vector.Indices()) || lex.Vector.Dimensions() != lexicon.Lexicon {
			t.Fatalf("terms %v of %v", lex.Terms, lex.Vector)
		}
		if !slices.IsSorted(lex.Terms) || len(slices.Compact(slices.Clone(lex.Terms))) != len(lex.Terms) {
			t.Fatalf("terms %v are not sorted and different", lex.Terms)
		}
		for i, w := range lex.Vector.Values() {
			if !(w > 0 && w < 2.2) || lex.Terms[i] < 0 || lex.Terms[i] >= lexicon.Lexicon {
				t.Fatalf("term %d weighs %v", lex.Terms[i], w)
			}
		}
		slices.Reverse(words)
		if again := lexicon.Document(the + strings.Join(words, "\n")); again.Vector.String() != lex.Vector.String() {
			t.Fatal("the words' order changes the weights")
		}
	})
}
