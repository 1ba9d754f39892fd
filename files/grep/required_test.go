package grep_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files/grep"
)

func TestWhatAPatternRequires(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, pattern, want string }{
		{"a text", "Needle", `"needle"`},
		{"the case of letters does not matter", "(?-i)NEEDLE", `"needle"`},
		{"nothing of two bytes", "ab", ``},
		{"the texts on both sides of a gap", "abc.*def", `("abc" & "def")`},
		{"what is too short is not asked for", "abc.*de", `"abc"`},
		{"texts across a group and an edge are one", `ab(cd)\bef`, `"abcdef"`},
		{"all alternatives", "abc|xyz", `("abc" | "xyz")`},
		{"nothing if one of them may be anything", "abc|x.z", ``},
		{"alternatives within a text", "foobar(abc|xyz)", `("foobar" & ("abc" | "xyz"))`},
		{"a common beginning", "foobar|foobaz", `"fooba"`},
		{"what repeats once or more", "(abc)+def", `("abc" & "def")`},
		{"a letter before its repeats", "abb+c", `"abb"`},
		{"what repeats so often", "(?:ab){2}c", `"ababc"`},
		{"the beginning of what repeats more often", "a{9}", `"aaaa"`},
		{"nothing of what may be missing", "(abc)?def", `"def"`},
		{"nothing of what may not repeat", "(abc)*(def){0,3}", ``},
		{"a class of one letter", "[Nn]eedle", `"needle"`},
		{"no other class where there is a text", "n[eo]edle", `"edle"`},
		{"one of the texts of classes where there is none", `[jq]x[jq]`, `("jxj" | "jxq" | "qxj" | "qxq")`},
		{"classes as far as they are few texts", `[jq]x[jq][a-z0-9]`, `("jxj" | "jxq" | "qxj" | "qxq")`},
		{"a digit beside classes", `[jq]x[x]\d`,
			`("jxx0" | "jxx1" | "jxx2" | "jxx3" | "jxx4" | "jxx5" | "jxx6" | "jxx7" | "jxx8" | "jxx9" | ` +
				`"qxx0" | "qxx1" | "qxx2" | "qxx3" | "qxx4" | "qxx5" | "qxx6" | "qxx7" | "qxx8" | "qxx9")`},
		{"up to 128 texts of classes", `[jq][xz][jq]\d`, eighty()},
		{"digits beside a text", `x\d-`, `("x0-" | "x1-" | "x2-" | "x3-" | "x4-" | "x5-" | "x6-" | "x7-" | "x8-" | "x9-")`},
		{"nothing of classes of many", `[a-m]x[a-m]`, ``},
		{"s and k, which have a third case", "(?i)sketch", `"sketch"`},
		{"long s and the sign of Kelvin, as what they fold to", "me\u017F\u212A", `"mesk"`},
		{"no other letter that has cases", "(?i)größer", ``},
		{"such a letter where case counts", "(?-i)größe", `("größe" | "gr\\u00f6\\u00dfe")`},
		{"writing without case", "日本語", `("日本語" | "\\u65e5\\u672c\\u8a9e")`},
		{"nothing across lines", "abc\ndef", `("abc" & "def")`},
	} {
		p := compile(t, tt.pattern, grep.PatternOptions{})
		if got := p.Required(); got != tt.want {
			t.Errorf("%s: %q requires %s, want %s", tt.name, tt.pattern, got, tt.want)
		}
	}
	if got := compile(t, "a.c+", grep.PatternOptions{Literal: true}).Required(); got != `"a.c+"` {
		t.Errorf("a literal pattern requires %s", got)
	}
	var many []string
	for i := range 129 {
		many = append(many, strings.Repeat(string(rune('一'+i)), 3))
	}
	if got := compile(t, strings.Join(many, "|"), grep.PatternOptions{}).Required(); got != `` {
		t.Errorf("too many alternatives require %s", got)
	}
}

// eighty returns the texts of [jq][xz][jq]\d.
func eighty() string {
	var texts []string
	for _, first := range "jq" {
		for _, second := range "xz" {
			for _, third := range "jq" {
				for digit := range 10 {
					texts = append(texts, fmt.Sprintf("%q", fmt.Sprintf("%c%c%c%d", first, second, third, digit)))
				}
			}
		}
	}
	return "(" + strings.Join(texts, " | ") + ")"
}

// The index never leaves out a unit with a matching line.
func FuzzRequired(f *testing.F) {
	for _, pattern := range []string{"needle", "(?i)sk[yz]+", "a(bc|de)+f", "日本|\u212A\u017Fx", "x{2,3}yz",
		"[sS\u017F]tore"} {
		f.Add(pattern, "a NEEDLE in the \u212Aey \u017Ftore\nabcdef xxyz 日本語", false)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, caseSensitive bool) {
		text = strings.ToValidUTF8(text, "?")
		p, err := grep.Compile(pattern, grep.PatternOptions{CaseSensitive: caseSensitive})
		if err != nil {
			t.Skip()
		}
		if matches := matchesAny(p, text); matches && !p.MayMatch(text) {
			t.Errorf("%q matches %q, and the index passes over it (%s)", pattern, text, p.Required())
		}
	})
}

func matchesAny(p *grep.Pattern, text string) (matches bool) {
	p.Lines(text, func(_, _, _ int) bool {
		matches = true
		return false
	})
	return matches
}

// wordPattern generates patterns that sometimes match a text of the same words.
func wordPattern() *rapid.Generator[string] {
	word := rapid.SampledFrom(indexWords)
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.Map(word, regexp.QuoteMeta),
			rapid.Map(word, func(w string) string { return regexp.QuoteMeta(w[:len(w)/2]) }),
			rapid.SampledFrom([]string{".", ".*", " ?", `\b`, "[a-k]", "[sS]", "s", "K", "(?i)", "(?-i)", "^", "$", `\d+`, "é"}),
			rapid.Custom(func(t *rapid.T) string {
				return "(" + regexp.QuoteMeta(word.Draw(t, "one")) + "|" + regexp.QuoteMeta(word.Draw(t, "other")) + ")" +
					rapid.SampledFrom([]string{"", "+", "?", "{2}"}).Draw(t, "times")
			}),
		), 1, 4).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

var indexWords = []string{"sketch", "Storage", "handler", "\u212Aelvin", "me\u017Fsage", "日本語", "größer", "deadbeef",
	"svc-7", "a.b(c)", "needle", "x"}

func TestTheIndexPassesOverNothingThatMatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := wordPattern().Draw(t, "pattern")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(indexWords, "\n", " ")), 0, 30).Draw(t, "text"), "")
		p, err := grep.Compile(pattern, grep.PatternOptions{CaseSensitive: rapid.Bool().Draw(t, "case")})
		if err != nil {
			return
		}
		if matchesAny(p, text) && !p.MayMatch(text) {
			t.Fatalf("%q matches %q, and the index passes over it (%s)", pattern, text, p.Required())
		}
	})
}

func TestTheIndexPassesOverWhatCannotMatch(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, pattern := range []string{"needle", "(abc|xyz)12345", "deadbeefcafe"} {
		var text strings.Builder
		for text.Len() < grep.SegmentBytes {
			text.WriteString(strings.ToUpper(indexWords[random.IntN(6)]) + "\n")
		}
		if p := compile(t, pattern, grep.PatternOptions{}); p.MayMatch(text.String()) {
			t.Errorf("%q is looked for in a text that has nothing of it", pattern)
		}
	}
}

func BenchmarkRequired(b *testing.B) {
	for b.Loop() {
		for _, pattern := range benchPatterns {
			grep.RequiredBy(pattern)
		}
	}
}

func BenchmarkIndexUnit(b *testing.B) {
	text := benchText()[:grep.SegmentBytes]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		grep.IndexUnit(text)
	}
}
