package embedtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed/lexicon"
)

// Colliding returns two words with different terms that have the same TermID.
func Colliding(t testing.TB) (a, b string) {
	t.Helper()
	if a, b = "xxzlzq", "xvdbbcq"; collide(a, b) { // finding a pair takes most of a second
		return a, b
	}
	words := map[int32]string{}
	for i := range 1 << 20 {
		word := fmt.Sprintf("x%sq", spelled(i))
		ids, terms := lexicon.TermIDs(word), lexicon.DistinctTerms(word)
		if len(ids) != 1 {
			continue
		}
		if other, ok := words[ids[0]]; ok && lexicon.DistinctTerms(other)[0] != terms[0] {
			return other, word
		}
		words[ids[0]] = word
	}
	t.Fatal("no two words collide")
	return "", ""
}

// collide reports whether two words have different terms with the same TermID.
func collide(a, b string) bool {
	x, y := lexicon.TermIDs(a), lexicon.TermIDs(b)
	return len(x) == 1 && slices.Equal(x, y) && lexicon.DistinctTerms(a)[0] != lexicon.DistinctTerms(b)[0]
}

// spelled writes a number in letters.
func spelled(n int) string {
	word := []byte{}
	for ; n > 0; n /= 20 {
		word = append(word, "bcdfghjklmnpqrstvwxz"[n%20])
	}
	return string(word)
}
