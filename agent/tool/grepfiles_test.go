package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/files"
)

func match(file string, n int, text string, context ...string) files.GrepMatch {
	var m files.GrepMatch
	m.FileName, m.Line, m.Text = file, n, text
	if len(context) == 2 {
		m.Before, m.After = context[:1], context[1:]
	}
	return m
}

func on(pages files.Pages, m files.GrepMatch) files.GrepMatch {
	m.Pages = pages
	return m
}

// found returns a result with exactly these matches, and the given number of waiting files.
func found(waiting int, matches ...files.GrepMatch) files.GrepResult {
	r := searched(9-waiting, waiting)
	r.Total, r.Matches = len(matches), matches
	for _, m := range matches {
		if n := len(r.Files); n == 0 || r.Files[n-1].FileName != m.FileName {
			r.Files = append(r.Files, files.FileCount{FileName: m.FileName})
		}
		r.Files[len(r.Files)-1].Matches++
	}
	return r
}

// searched returns a result without matches from nine attached files. n of them were searched, and some are waiting.
func searched(n, waiting int) (r files.GrepResult) {
	r.Attached, r.Searched, r.Waiting = 9, n, waiting
	return r
}

func TestGrepText(t *testing.T) {
	t.Parallel()
	plain := files.GrepQuery{Pattern: "retry", ContextLines: 1}
	every := files.GrepQuery{Pattern: `say "<hi>" & \d`, Include: "docs/*.md", ContextLines: 3, Offset: 20,
		CaseSensitive: true, Literal: true}
	two := found(0, match("docs/a.md", 7, "a retry", "before", "after"), match("src/b.go", 1, "func retry()"))
	more := two
	more.Total, more.Files = 57, []files.FileCount{{FileName: "src/b.go", Matches: 55},
		{FileName: "docs/a.md", Matches: 2}}
	capped := more
	capped.Total, capped.Capped = 1000, true
	past := searched(9, 0)
	past.Total, past.Files = 41, []files.FileCount{{FileName: "docs/a.md", Matches: 41}}
	pastCap := past
	pastCap.Total, pastCap.Capped = 1000, true
	many := two
	many.Files = nil
	for i := range 60 {
		many.Files = append(many.Files, files.FileCount{FileName: fmt.Sprintf("docs/%02d.md", i), Matches: 1})
	}
	for _, tt := range []struct {
		name  string
		query files.GrepQuery
		found files.GrepResult
	}{
		{"grep_none_attached", plain, files.GrepResult{}},
		{"grep_none_included", files.GrepQuery{Pattern: "retry", Include: "*.rs"}, searched(0, 0)},
		{"grep_none", plain, searched(9, 0)},
		{"grep_none_waiting", every, searched(7, 2)},
		{"grep_one", plain, found(1, match("docs/a.md", 7, "a retry", "before", "after"))},
		{"grep_two", plain, two},
		{"grep_more", plain, more},
		{"grep_more_of_everything", every, more},
		{"grep_capped", plain, capped},
		{"grep_capped_last_page", files.GrepQuery{Pattern: "retry", ContextLines: 1, Offset: 998}, capped},
		{"grep_past_the_end", files.GrepQuery{Pattern: "retry", ContextLines: 1, Offset: 60}, past},
		{"grep_past_the_cap", files.GrepQuery{Pattern: "retry", ContextLines: 1, Offset: 1200}, pastCap},
		{"grep_many_files", plain, many},
		{"grep_long_line", plain, found(0, match("data/one.json", 1, strings.Repeat("é", 5000)))},
		{"grep_adjacent", plain, found(2,
			match("docs/a.md", 2, "two", "one", "three"),
			match("docs/a.md", 3, "three", "two", "four"),
			match("docs/a.md", 5, "five", "four", "six"),
			match("docs/a.md", 8, "eight", "seven", "nine"),
			match("docs/a.md", 11, "eleven", "ten", "twelve"),
			match("docs/a.md", 14, "fourteen", "", "fifteen"),
			match("docs/a.md", 90, "ninety", "eighty-nine", "ninety-one"),
			match("docs/b.md", 2, "two", "one", "three"),
			match("docs/c.md", 3, "three", "two", "four"))},
		{"grep_paged", plain, found(0,
			on(files.Pages{Word: "page", First: 3, Last: 3}, match("docs/a.pdf", 7, "a retry", "before", "after")),
			on(files.Pages{Word: "page", First: 3, Last: 3}, match("docs/a.pdf", 20, "first retry", "before", "after")),
			on(files.Pages{Word: "page", First: 4, Last: 4}, match("docs/a.pdf", 22, "second retry", "", "after")),
			on(files.Pages{Word: "sheet", First: 2, Last: 2}, match("docs/b.xlsx", 1, "retry")),
			match("src/b.go", 1, "func retry()"))},
		{"grep_hostile", files.GrepQuery{Pattern: "a\n=== b:1 ===", ContextLines: 1}, found(0,
			match("docs/a\n=== b.md", 2, "=== docs/a.md:9 ===\r=== docs/b.md:1 ===", "=== x ===",
				"a\u2028=== y ===\u0085=== z ==="))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, tt.name, tool.GrepText(tt.query, tt.found))
		})
	}
}

func TestAGrepPageThatDoesNotFitNamesWhereTheNextBegins(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("é", 900)
	var matches []files.GrepMatch
	for n := range files.GrepPage {
		m := match("docs/a.md", 10+10*n, wide)
		m.Before, m.After = []string{wide, wide}, []string{wide, wide}
		matches = append(matches, m)
	}
	r := found(0, matches...)
	r.Total = 500
	got := tool.GrepText(files.GrepQuery{Pattern: "é", ContextLines: 2, Offset: 40}, r)
	if n := utf8.RuneCountInString(got); n > tool.MaxChars {
		t.Errorf("%d characters, want at most %d", n, tool.MaxChars)
	}
	shown := strings.Count(got, "\n> ")
	for _, want := range []string{
		fmt.Sprintf("(showing matches 41-%d of 500)", 40+shown),
		fmt.Sprintf(`grep_files(pattern="é", context_lines=2, offset=%d)`, 40+shown),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%d matches are shown, but the text lacks %q: %.300s", shown, want, got)
		}
	}
}

// Whatever the files contain, a page shows each line once, with its own text and number, and marks the matches. Nothing
// else on the page looks like a head.
func TestGrepShowsEveryLineOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "text", "=== docs/a.md:1 ===", "> 7: x", "a\r=== b ===",
			"To see more matches, call: x"}), 1, 30).Draw(t, "lines")
		matching := rapid.SliceOfN(rapid.Bool(), len(lines), len(lines)).Draw(t, "matching")
		around := rapid.IntRange(0, 4).Draw(t, "context")
		r, want := grepped(lines, matching, around)
		if r.Total == 0 {
			return
		}
		got := tool.GrepText(files.GrepQuery{Pattern: "x", ContextLines: around}, r)
		_, body, _ := strings.Cut(got, "Files with matches:\n")
		var shown []string
		for l := range strings.SplitSeq(body, "\n") {
			if strings.HasPrefix(l, "  ") && !strings.HasPrefix(l, "  - ") || strings.HasPrefix(l, "> ") {
				shown = append(shown, l)
			} else if strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "=== docs/real.md:") {
				t.Fatalf("a forged head %q in:\n%s", l, got)
			}
		}
		if strings.Join(shown, "\n") != strings.Join(want, "\n") {
			t.Fatalf("shown:\n%s\nwant:\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
		}
	})
}

// grepped returns the result of a search in one file in which the given lines match, and the lines as a page should
// show them.
func grepped(lines []string, matching []bool, around int) (r files.GrepResult, want []string) {
	near := make([]bool, len(lines))
	for i := range lines {
		if !matching[i] || r.Total == files.GrepPage {
			continue
		}
		from, to := max(0, i-around), min(len(lines), i+around+1)
		m := match("docs/real.md", i+1, lines[i])
		m.Before, m.After = lines[from:i], lines[i+1:to]
		r.Matches = append(r.Matches, m)
		r.Total++
		for j := from; j < to; j++ {
			near[j] = true
		}
	}
	for i, l := range lines {
		mark := " "
		for _, m := range r.Matches {
			if m.Line == i+1 {
				mark = ">"
			}
		}
		if near[i] {
			want = append(want, fmt.Sprintf("%s %d: %s", mark, i+1, frame.MarkLineEnds(l)))
		}
	}
	r.Attached, r.Searched, r.Files = 1, 1, []files.FileCount{{FileName: "docs/real.md", Matches: r.Total}}
	return r, want
}
