package tokens_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/tokens"
)

// counted is a text with the counts of several tokenizers, as written by scripts/token-counts.mjs.
type counted struct {
	Name   string
	Text   string
	Tokens map[string]int
}

func (c counted) largest() (name string, n int) {
	for tokenizer, tokens := range c.Tokens {
		if tokens > n {
			name, n = tokenizer, tokens
		}
	}
	return name, n
}

func countedTexts(t testing.TB) (all []counted) {
	t.Helper()
	raw, err := os.ReadFile("testdata/texts.json")
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil || len(all) < 150 {
		t.Fatalf("testdata/texts.json has %d texts: %v", len(all), err)
	}
	return all
}

// The estimate with its margin is at least each tokenizer's count, and at most 1.35 times the largest.
func TestEstimateHoldsAgainstTokenizers(t *testing.T) {
	t.Parallel()
	for _, c := range countedTexts(t) {
		name, most := c.largest()
		got := tokens.Uncalibrated.Of(tokens.Estimate(c.Text))
		if len(c.Tokens) != 5 || got < most || float64(got) > 1.35*float64(most) {
			t.Errorf("%s: got %d tokens, %.2f times the %d of %s, the most of %d tokenizers", c.Name, got,
				float64(got)/float64(most), most, name, len(c.Tokens))
		}
	}
}

// Prefix and Suffix return texts within the given count, and little more of the text would exceed it.
func TestCutsAgreeWithTheEstimate(t *testing.T) {
	t.Parallel()
	for _, c := range countedTexts(t) {
		all := tokens.Estimate(c.Text)
		for _, n := range []int{-1, 0, 1, 2, 7, all / 3, all - 1, all} {
			prefix, suffix := tokens.Prefix(c.Text, n), tokens.Suffix(c.Text, n)
			if !strings.HasPrefix(c.Text, prefix) || !strings.HasSuffix(c.Text, suffix) ||
				!utf8.ValidString(prefix) || !utf8.ValidString(suffix) {
				t.Errorf("%s to %d tokens: got %q and %q", c.Name, n, prefix, suffix)
			}
			const joined = 20 // tokens of the longest sign in the texts that people see as one character
			for side, got := range map[string]int{"Prefix": tokens.Estimate(prefix), "Suffix": tokens.Estimate(suffix)} {
				if got > max(n, 0) || got < n-joined || n == all && got != all {
					t.Errorf("%s: %s to %d tokens of %d has %d", c.Name, side, n, all, got)
				}
			}
		}
	}
}

func TestHostileTextsAreEstimated(t *testing.T) {
	t.Parallel()
	for name, text := range hostile(1 << 17) {
		got := tokens.Estimate(text)
		if got < len(text)/20 || got > 2*len(text) || len(tokens.Prefix(text, 10)) > 200 {
			t.Errorf("%s: got %d tokens of %d bytes", name, got, len(text))
		}
	}
}

func BenchmarkEstimate(b *testing.B) {
	for _, c := range countedTexts(b) {
		switch c.Name {
		case "prose, the README", "Go", "base64", "decimals", "hexjson", "joined", "declaration of human rights, hi":
			b.Run(strings.ReplaceAll(c.Name, " ", "_"), func(b *testing.B) {
				b.SetBytes(int64(len(c.Text)))
				for b.Loop() {
					tokens.Estimate(c.Text)
				}
			})
		}
	}
}
