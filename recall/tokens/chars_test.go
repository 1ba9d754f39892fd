package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/tokens"
)

// pieces have characters of each length in bytes, and bytes that are no characters.
var pieces = []string{"a", "the sea ", "0123456789abcdef", "é", "記", "👩", "\xff", "\xe8\xa8", "\x00", "\n"}

func TestCharsAreCountedAndASCIIIsFound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		text := b.String()
		if got, want := tokens.Chars(text), utf8.RuneCountInString(text); got != want {
			t.Fatalf("Chars(%q) = %d, want %d", text, got, want)
		}
		isASCII := func(s string) bool {
			return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
		}
		if n := tokens.ASCIIPrefix(text); !isASCII(text[:n]) || n < len(text) && text[n] < utf8.RuneSelf {
			t.Fatalf("ASCIIPrefix(%q) = %d", text, n)
		}
		if n := len(text) - tokens.ASCIISuffix(text); !isASCII(text[n:]) || n > 0 && text[n-1] < utf8.RuneSelf {
			t.Fatalf("ASCIISuffix(%q) leaves %d", text, n)
		}
	}
}

// The table of costs of short runs has fewer slots than there are runs, and still each run keeps its cost.
func TestRunsThatShareAPlaceKeepTheirCosts(t *testing.T) {
	t.Parallel()
	for pass := range 2 {
		rng := rand.New(rand.NewPCG(2, 2))
		for i := range 30_000 {
			run := make([]byte, 1+rng.IntN(8))
			for j := range run {
				run[j] = byte('a' + rng.IntN(26))
				if i%3 == 0 {
					run[j] = byte('!' + rng.IntN(15))
				}
			}
			if got, want := tokens.Estimate(string(run)), tokens.Counted(string(run)); got != want {
				t.Fatalf("pass %d: Estimate(%q) = %d, want %d", pass, run, got, want)
			}
		}
	}
}
