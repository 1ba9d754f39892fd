package grep_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/grep"
)

func compile(t interface{ Fatalf(string, ...any) }, pattern string, o grep.PatternOptions) *grep.Pattern {
	p, err := grep.Compile(pattern, o)
	if err != nil {
		t.Fatalf("Compile(%q): %v", pattern, err)
	}
	return p
}

// found returns what Lines yields for a block: places and texts.
func found(p *grep.Pattern, block string) (lines []string) {
	p.Lines(block, func(line, start, end int) bool {
		lines = append(lines, fmt.Sprintf("%d %d-%d %q", line, start, end, block[start:end]))
		return true
	})
	return lines
}

// linesOf returns the lines of a block without their ends.
func linesOf(block string) []string {
	if block == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(block, "\n"), "\n")
}

// foundOneByOne returns what Lines must yield: the standard library matches each line by itself.
func foundOneByOne(re *regexp.Regexp, block string) (lines []string) {
	start := 0
	for i, line := range linesOf(block) {
		if re.MatchString(line) {
			lines = append(lines, fmt.Sprintf("%d %d-%d %q", i, start, start+len(line), line))
		}
		start += len(line) + 1
	}
	return lines
}

func TestLines(t *testing.T) {
	t.Parallel()
	exact := grep.PatternOptions{CaseSensitive: true}
	for _, tt := range []struct {
		name, pattern, block string
		options              grep.PatternOptions
		want                 []int
	}{
		{"case is ignored", "foo", "Foo\nbar\nFOO", grep.PatternOptions{}, []int{0, 2}},
		{"case counts if asked", "foo", "Foo\nfoo\n", exact, []int{1}},
		{"a literal is no expression", "a.b", "axb\nA.B\n", grep.PatternOptions{Literal: true}, []int{1}},
		{"a literal in this case", "a.b(", "A.B(\na.b(", grep.PatternOptions{Literal: true, CaseSensitive: true}, []int{1}},
		{"a line counts once", "a", "aaa\nbab\n", exact, []int{0, 1}},
		{"the edges are the line's", "^b$", "a\nb\nab\nb", exact, []int{1, 3}},
		{"so are those of the text", `\Ab\z`, "a\nb\nab\nb\n", exact, []int{1, 3}},
		{"and those without multiline mode", `(?-m)^b(?-m:$)`, "a\nb\nab\n", exact, []int{1}},
		{"empty lines are lines", "^$", "\n\na\n\n", exact, []int{0, 1, 3}},
		{"there is no line after the last end", "$", "a\nb\n", exact, []int{0, 1}},
		{"a pattern of nothing fits all", "x*", "a\n\nxx", exact, []int{0, 1, 2}},
		{"no class crosses a line", "a[^x]b", "a\nb\na b\n", exact, []int{2}},
		{"no blank crosses a line", `a\s+b`, "a\nb\na\tb\n", exact, []int{2}},
		{"no dot crosses a line", `(?s)a.b`, "a\nb\naxb\n", exact, []int{2}},
		{"a line end is never found", `a\n`, "a\na\n", exact, nil},
		{"nor by its code", `a[\x0a]`, "a\na\n", exact, nil},
		{"a line end may be an alternative", `\n|b`, "a\nb\n", exact, []int{1}},
		{"word edges are at line edges", `\bb\b`, "ab\nb\nb c\n", exact, []int{1, 2}},
		{"no place is within a character", `\B`, "aéa\néé\n", exact, []int{1}},
		{"characters, not bytes", "^.$", "日\nab\né", exact, []int{0, 2}},
		{"line ends around a pattern go", "foo\r\n", "foo bar", exact, []int{0}},
		{"blanks in a pattern stay", " foo ", "foo\na foo b\n", exact, []int{1}},
		{"an empty block has no lines", "x*", "", exact, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []int
			compile(t, tt.pattern, tt.options).Lines(tt.block, func(line, _, _ int) bool {
				got = append(got, line)
				return true
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q in %q: lines %v, want %v", tt.pattern, tt.block, got, tt.want)
			}
		})
	}
}

func TestCompileSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, want string }{
		{"", "Empty search pattern provided"},
		{" \t\n", "Empty search pattern provided"},
		{strings.Repeat("ü", 1001), "Pattern too complex: 1001 chars > 1000 limit"},
		{"a(b", "Invalid regex pattern: error parsing regexp: missing closing ): `a(b`. To find text as it stands, escape"},
		{"a(?=b)", "Invalid regex pattern: error parsing regexp: " +
			"invalid or unsupported Perl syntax: `(?=`. Look-ahead and look-behind"},
		{"(?<!a)b", "Invalid regex pattern: error parsing regexp: " +
			"invalid named capture: `(?<!a)b`. Look-ahead and look-behind"},
		{`(a)\1`, "Invalid regex pattern: error parsing regexp: " +
			"invalid escape sequence: `\\1`. Back-references are not supported"},
		{"a{1001}", "Invalid regex pattern: error parsing regexp: invalid repeat count: `{1001}`. At most 1000 repeats"},
		{"a**", "Invalid regex pattern: error parsing regexp: invalid nested repetition operator: `**`. Possessive"},
		{"((a{100}){100}){100}", "Invalid regex pattern: error parsing regexp: "},
		{`\pL{1000}`, "Pattern too complex: "},
		{"(a?b){900}", "Pattern too complex: "},
		{"a\xff", "Invalid regex pattern: error parsing regexp: invalid UTF-8"},
	} {
		if _, err := grep.Compile(tt.pattern, grep.PatternOptions{}); !errors.Is(err, db.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Compile(%.40q): %v, want ErrInvalid and %q", tt.pattern, err, tt.want)
		}
	}
	for _, pattern := range []string{"a(b", "(?=", `\1`, "*", "a\xff"} {
		if _, err := grep.Compile(pattern, grep.PatternOptions{Literal: true}); err != nil && pattern != "a\xff" {
			t.Errorf("Compile of the text %q: %v", pattern, err)
		}
	}
}

// anyPattern draws regular expressions. Many match something in anyBlock.
func anyPattern() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{"a", "b", "B", "ab", "x", "é", "K", "ſ", ".", `\s`, `\S`, `\w`, `\W`, `\d`, "[^x]",
		"[^\\n]", "[a-c]", `[\s\S]`, "[[:space:]]", `\pL`, "^", "$",
		`\A`, `\z`, `\b`, `\B`, `\n`, "(?s:.)", "(?i:b)", "(?m:^)", "(?-i:A)", "(?m:$)", "()"})
	repeat := rapid.SampledFrom([]string{"", "", "", "*", "+", "?", "*?", "+?", "{2}", "{0,3}"})
	pattern := rapid.Custom(func(t *rapid.T) string { return atom.Draw(t, "atom") + repeat.Draw(t, "repeat") })
	for range 3 {
		inner := pattern
		pattern = rapid.Custom(func(t *rapid.T) string {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				return "(" + inner.Draw(t, "group") + ")" + repeat.Draw(t, "repeat")
			case 1:
				return "(?:" + inner.Draw(t, "left") + "|" + inner.Draw(t, "right") + ")" + repeat.Draw(t, "repeat")
			}
			return inner.Draw(t, "first") + inner.Draw(t, "second")
		})
	}
	return pattern
}

// anyBlock draws whole lines of few letters.
func anyBlock() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		line := rapid.StringOfN(rapid.SampledFrom([]rune("aabbcABxké日 \t\r\f_-1KſS")), 0, 8, -1)
		return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n") +
			rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	})
}

// Use -rapid.checks=5000 to try more patterns.
func TestLinesAgreeWithMatchingEachLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern, block := anyPattern().Draw(t, "pattern"), anyBlock().Draw(t, "block")
		o := grep.PatternOptions{CaseSensitive: rapid.Bool().Draw(t, "case"),
			Literal: rapid.IntRange(0, 7).Draw(t, "literal") == 0}
		expression := pattern
		if o.Literal {
			expression = regexp.QuoteMeta(pattern)
		}
		if !o.CaseSensitive {
			expression = "(?i)" + expression
		}
		got, want := found(compile(t, pattern, o), block), foundOneByOne(regexp.MustCompile(expression), block)
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q with %+v: %v, want %v", pattern, block, o, got, want)
		}
	})
}

func TestLinesOfHostileBlocks(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	nested := strings.Repeat("a", 50_000) + "b\n"
	for _, tt := range []struct {
		pattern, block string
		want           int
	}{
		{"(a+)+$", strings.Repeat(nested, 2), 0},
		{"(a|aa)+c", nested, 0},
		{"[^x]*y$", strings.Repeat("ab\n", 22_000), 0},
		{`(\s|\S)*z`, strings.Repeat("ab\n", 22_000), 0},
		{"^", strings.Repeat("\n", 65_536), 65_536},
		{".", strings.Repeat("a\n", 32_768), 32_768},
		{"9b", strings.Repeat("0123456789", 1<<19) + "b", 1},
		{"x{1000}", strings.Repeat("x", 999) + "\n" + strings.Repeat("x", 1000), 1},
		{strings.Repeat("[^x]", 250), strings.Repeat("y", 249) + "\n" + strings.Repeat("y", 250), 1},
		{`\pL{40}x`, strings.Repeat("é", 999) + "\n" + strings.Repeat("é", 40) + "x", 1},
		{"[ab]*a[ab]{40}[^ab]", strings.Repeat("ab", 3_000), 0},
		{"a", "\xff\xfea\xff\n\xff\na", 2},
		{"^$", "\xff\n\n", 1},
	} {
		got := 0
		compile(t, tt.pattern, grep.PatternOptions{}).Lines(tt.block, func(_, _, _ int) bool {
			got++
			return true
		})
		if got != tt.want {
			t.Errorf("%q: %d lines, want %d", tt.pattern, got, tt.want)
		}
	}
}

// A text is found in the escapes of JSON and source code, too.
func TestPatternsMatchEscapes(t *testing.T) {
	t.Parallel()
	exact := grep.PatternOptions{CaseSensitive: true}
	for _, tt := range []struct {
		pattern, line string
		options       grep.PatternOptions
		want          bool
	}{
		{"münchen", `"city": "M\u00FCnchen"`, grep.PatternOptions{}, true},
		{"MÜNCHEN", `"city": "m\u00fcnchen"`, grep.PatternOptions{}, true},
		{"Ünch", `"city": "M\u00fcnchen"`, exact, false},
		{"ünch", `"city": "M\u00FCnchen"`, exact, true},
		{"ünCH", `"city": "M\u00FCnchen"`, exact, false},
		{`city.*(ün|xyz)`, `"city": "M\u00FCnchen"`, grep.PatternOptions{}, true},
		{"привет 😀", `"\u041f\u0440\u0438\u0432\u0435\u0442 \ud83d\ude00"`, grep.PatternOptions{Literal: true}, true},
		{"привет", "Привет", grep.PatternOptions{}, true},
		{"привет", `\u041f\u0440\u0438\u0432\u0435`, grep.PatternOptions{}, false},
		{"[äöü]nch", `"city": "M\u00FCnchen"`, grep.PatternOptions{}, false}, // a class stays as it is
		{strings.Repeat("я", 400), strings.Repeat("я", 400), grep.PatternOptions{}, true},
	} {
		if got := len(found(compile(t, tt.pattern, tt.options), tt.line+"\n")) == 1; got != tt.want {
			t.Errorf("%q in %q: got %v, want %v", tt.pattern, tt.line, got, tt.want)
		}
	}
}
