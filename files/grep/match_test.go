package grep_test

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// matchesOneByOne returns what File must find.
func matchesOneByOne(re *regexp.Regexp, text string, want grep.MatchRange) grep.FileMatches {
	var found grep.FileMatches
	lines := linesOf(text)
	for i, line := range lines {
		if !re.MatchString(line) {
			continue
		}
		if found.Total == want.Cap {
			found.More = true
			break
		}
		if n := found.Total - want.Skip; n >= 0 && n < want.Take {
			found.Matches = append(found.Matches, grep.Match{Line: i + 1, Text: line,
				Before: lines[max(0, i-want.Context):i], After: lines[i+1 : min(len(lines), i+1+want.Context)]})
		}
		found.Total++
	}
	return found
}

// cutLong makes long lines alike: this test is not about how they are cut.
func cutLong(s string) string {
	if len(s) > 1000 {
		return "long"
	}
	return s
}

func TestFileAgreesWithMatchingEachLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		pattern := rapid.SampledFrom([]string{"a", "^$", "^", "b.*c", "x|é", "日$", "^end$", "z", `\s`, "[^a]"}).Draw(t,
			"pattern")
		want := grep.MatchRange{Context: rapid.IntRange(0, 4).Draw(t, "context"), Skip: rapid.IntRange(0, 5).Draw(t, "skip"),
			Take: rapid.IntRange(0, 8).Draw(t, "take"), Cap: rapid.IntRange(0, 30).Draw(t, "cap")}
		got, err := compile(t, pattern, grep.PatternOptions{}).File(stored(text), want)
		if err != nil {
			t.Fatalf("File: %v", err)
		}
		expected := matchesOneByOne(regexp.MustCompile("(?i)"+pattern), text, want)
		if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty(), cmp.Transformer("cut", cutLong),
			cmpopts.IgnoreFields(grep.Match{}, "At")); diff != "" {
			t.Fatalf("%q, %+v (-want +got):\n%s", pattern, want, diff)
		}
	})
}

func TestLongLinesAreCutAroundTheMatch(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 40_000)
	text := "before " + long + "\n" + long + "needle" + long + "\nafter " + long + "\nneedle" + long + "\n" + long +
		"needle"
	for _, o := range []grep.PatternOptions{{}, {CaseSensitive: true, Literal: true}} {
		got, err := compile(t, "needle", o).File(stored(text), grep.MatchRange{Context: 1, Take: 9, Cap: 99})
		if err != nil || got.Total != 3 {
			t.Fatalf("File: %d matches, %v, want 3", got.Total, err)
		}
		near := strings.Repeat("é", 498)
		for i, want := range []grep.Match{
			{Line: 2, Text: "[79002 bytes cut]..." + near + "éneedle" + near + "...[79004 bytes cut]",
				Before: []string{"before " + strings.Repeat("é", 996) + "...[78008 bytes cut]"}, After: []string{"after " +
					strings.Repeat("é", 997) + "...[78006 bytes cut]"}},
			{Line: 4, Text: "needle" + strings.Repeat("é", 997) + "...[78006 bytes cut]",
				Before: []string{"after " + strings.Repeat("é", 997) +
					"...[78006 bytes cut]"}, After: []string{strings.Repeat("é", 1000) + "...[78006 bytes cut]"}},
			{Line: 5, Text: "[78006 bytes cut]..." + strings.Repeat("é", 997) + "needle",
				Before: []string{"needle" + strings.Repeat("é", 997) + "...[78006 bytes cut]"}},
		} {
			want.At = strings.Index(want.Text, "needle")
			if diff := cmp.Diff(want, got.Matches[i], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("match %d (-want +got):\n%s", i, diff)
			}
		}
	}
}

func TestFileRefuses(t *testing.T) {
	t.Parallel()
	p := compile(t, "a", grep.PatternOptions{})
	for _, lines := range []int{-1, 21} {
		want := fmt.Sprintf("Invalid context_lines: %d. Ask for 0 to 20 lines, and open the file to see more around a match.",
			lines)
		if err := grep.CheckContext(lines); !errors.Is(err, db.ErrInvalid) || err.Error() != want {
			t.Errorf("context %d: %v, want %q", lines, err, want)
		}
	}
	broken := errors.New("broken")
	segments := func(yield func(grep.Segment, error) bool) { yield(grep.Segment{}, broken) }
	if _, err := p.File(segments, grep.MatchRange{Cap: 9}); !errors.Is(err, broken) {
		t.Errorf("segments that cannot be read: %v, want %v", err, broken)
	}
}

func TestFileStopsReadingWhenItKnows(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a\n", 1_000_000)
	read := 0
	segments := func(yield func(grep.Segment, error) bool) {
		for s := range grep.Segments(text) {
			read++
			if !yield(s, nil) {
				return
			}
		}
	}
	got, err := compile(t, "a", grep.PatternOptions{}).File(segments, grep.MatchRange{Take: 1, Cap: 1000})
	if err != nil || got.Total != 1000 || !got.More || read != 1 {
		t.Errorf("File: %d matches, more %t, %d segments read, %v, want 1000 and more of one segment", got.Total, got.More,
			read, err)
	}
}

func TestFileOfHostileTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, pattern string
		total         int
	}{
		"five megabytes in one line": {strings.Repeat("0123456789", 1<<19) + "needle", "9needle", 1},
		"a million empty lines":      {strings.Repeat("\n", 1_000_000), "^$", 1000},
		"nothing":                    {"", "^", 0},
		"no UTF-8":                   {"\xff\n\x80a\xff", "a", 1},
	} {
		got, err := compile(t, tt.pattern, grep.PatternOptions{}).File(stored(tt.text),
			grep.MatchRange{Context: 20, Take: 20, Cap: 1000})
		if err != nil || got.Total != tt.total {
			t.Errorf("%s: %d matches, %v, want %d", name, got.Total, err, tt.total)
		}
	}
}

// grepLines returns the numbers and texts that grep -n prints.
func grepLines(t *testing.T, text string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "grep", append([]string{"-n", "-a"}, args...)...)
	cmd.Env, cmd.Stdin = []string{"LC_ALL=C.UTF-8"}, strings.NewReader(text)
	output, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("grep %q: %v", args, err)
	}
	return linesOf(string(output))
}

func TestFileAgreesWithGrep(t *testing.T) {
	t.Parallel()
	text := "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"Hello, wörld\")\n}\n\n" +
		"// TODO: 404 is an ERROR\n" +
		"error: svc-7 timed out after 30s\nError: svc-12 refused\n   \n" +
		"see https://example.org/a_b?c=1\ncolour, color; colouur\nÀ la carte\nlast line without end"
	for _, pattern := range []string{"main", "^$", "^[[:space:]]*$", "error", "svc-[0-9]+", "colou?r\\b",
		"(Hello|refused)", "^.{5}$", "[^a-z ]{3}",
		"\\bis\\b", "w.rld", "end$", "à", "[0-9]{2,3}s?", "a|b"} {
		for _, o := range []grep.PatternOptions{{}, {CaseSensitive: true}, {Literal: true},
			{Literal: true, CaseSensitive: true}} {
			args := []string{"-E", "-e", pattern}
			if o.Literal {
				args[0] = "-F"
			}
			if !o.CaseSensitive {
				args = append(args, "-i")
			}
			found, err := compile(t, pattern, o).File(stored(text), grep.MatchRange{Take: 99, Cap: 99})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found.Matches {
				got = append(got, fmt.Sprintf("%d:%s", m.Line, m.Text))
			}
			if want := grepLines(t, text, args...); !slices.Equal(got, want) {
				t.Errorf("%q with %+v: %q, want %q", pattern, o, got, want)
			}
		}
	}
}
