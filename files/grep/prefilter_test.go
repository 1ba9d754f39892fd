package grep_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files/grep"
)

// A pattern finds the same lines with and without the prefilter.
func TestThePrefilterPassesOverNoLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := wordPattern().Draw(t, "pattern")
		words := append(slices.Clone(indexWords), "\n", "\n", " ", "STORAGE", "jqz7", "\u017F", "\r\n")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 60).Draw(t, "text"), "")
		if rapid.Bool().Draw(t, "long") { // few lines have a text
			text = strings.Repeat("nothing here\n", 300) + text + strings.Repeat("\nnor there", 300)
		}
		p, err := grep.Compile(pattern, grep.PatternOptions{CaseSensitive: rapid.Bool().Draw(t, "case")})
		if err != nil {
			return
		}
		if got, want := matchingLines(p, text), matchingLines(p.WithoutPrefilter(), text); !slices.Equal(got, want) {
			t.Fatalf("%q finds the lines %v with its texts %s and %v without", pattern, got, p.Required(), want)
		}
	})
}

func TestThePrefilterFindsPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, text string
		want          []int
	}{
		{"needle", "a Needle\nneedleneedle\nneedl", []int{2, 9, 15}},
		{"abc|xyz12", "abcxyz1xyz12 ABC", []int{0, 7, 13}},
		{"(abc|def).*longest", "abc def LONGEST", []int{8}},
		{"[jq]x[jq]", "jxq qxj jxx", []int{0, 4}},
		{"needle", "me\u017Fsage needle", nil}, // not searched: \u017F is another s
		{"日本語", "今日本語", []int{3}},
		{"a.c", "abc", nil},
	} {
		if got := compile(t, tt.pattern, grep.PatternOptions{}).Places(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q has places %v in %q, want %v", tt.pattern, got, tt.text, tt.want)
		}
	}
}

func matchingLines(p *grep.Pattern, text string) (lines []int) {
	p.Lines(text, func(line, _, _ int) bool {
		lines = append(lines, line)
		return true
	})
	return lines
}
