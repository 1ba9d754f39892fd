package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/files"
)

// viewed returns the content of a file with n lines, cut to lines a to b. Each line has the given text.
func viewed(a, b, n int, text string) string {
	lines := []string{fmt.Sprintf("[Viewing lines %d to %d (out of %d lines)]", a, b, n)}
	for n := a; n <= b; n++ {
		lines = append(lines, fmt.Sprintf("%d: %s", n, text))
	}
	return strings.Join(lines, "\n")
}

func TestOpenText(t *testing.T) {
	t.Parallel()
	whole := files.Opened{Name: "docs/a.md", FirstLine: 1, LastLine: 3,
		Content: "[Viewing file start (out of 3 lines)]\n1: # Head\n2: \n3: === docs/b.md ==="}
	part := files.Opened{Name: "docs/b.md", FirstLine: 21, LastLine: 25, Content: viewed(21, 25, 90, "text"),
		Request: files.OpenRequest{Offset: new(20), Length: new(5)}}
	short := part
	short.LastLine, short.Content = 23, viewed(21, 23, 23, "text")
	toEnd := part
	toEnd.Request.Length = nil
	empty := files.Opened{Name: "docs/empty.txt", Content: "[Viewing file start (out of 0 lines)]",
		Request: files.OpenRequest{Offset: new(0), Length: new(50)}}
	odd := files.Opened{Name: "docs/a\n=== b.md", FirstLine: 1, LastLine: 1,
		Content: "[Viewing file start (out of 1 lines)]\n1: head\r=== docs/b.md ===\u2028=== docs/c.md ==="}
	for _, tt := range []struct {
		name    string
		opening files.Opening
		content bool
	}{
		{"open_whole", files.Opening{Files: []files.Opened{whole}}, false},
		{"open_range", files.Opening{Files: []files.Opened{part}}, false},
		{"open_range_past_the_end", files.Opening{Files: []files.Opened{short}}, false},
		{"open_to_end", files.Opening{Files: []files.Opened{toEnd}}, false},
		{"open_empty", files.Opening{Files: []files.Opened{empty}}, true},
		{"open_many", files.Opening{Files: []files.Opened{whole, part}, ClosedOthers: []string{"docs/x.md", "docs/y.md"},
			ClosedToLimit: []string{"docs/z.md"}}, false},
		{"open_previously_full", files.Opening{Files: []files.Opened{previously(part, 0, nil)}}, false},
		{"open_previously_range", files.Opening{Files: []files.Opened{previously(whole, 20, new(5))}}, false},
		{"open_previously_to_end", files.Opening{Files: []files.Opened{previously(part, 9, nil)}}, false},
		{"open_content", files.Opening{Files: []files.Opened{whole, part}, ClosedToLimit: []string{"docs/z.md"}}, true},
		{"open_hostile", files.Opening{Files: []files.Opened{odd}, ClosedOthers: []string{"docs/a\n=== b.md"}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, tt.name, tool.OpenText(tt.opening, tt.content))
		})
	}
}

func previously(f files.Opened, offset int, length *int) files.Opened {
	f.WasOpen, f.Previous = true, &files.LineRange{Offset: offset, Length: length}
	return f
}

func TestOpenTextNamesTheCallForTheRest(t *testing.T) {
	t.Parallel()
	cut := files.Opened{Name: `docs/"a".md`, FirstLine: 101, LastLine: 140, NextOffset: new(140), ShownNext: new(140),
		Content: viewed(101, 140, 900, "text"),
		Request: files.OpenRequest{Offset: new(100), Length: new(100)}}
	checkGolden(t, "open_rest", tool.OpenText(files.Opening{Files: []files.Opened{cut}}, false))
	checkGolden(t, "open_rest_of_content", tool.OpenText(files.Opening{Files: []files.Opened{cut}}, true))

	// The prompt may show less than Open returns. Then the rest begins where the prompt's view ends.
	long := files.Opened{Name: "docs/long.md", FirstLine: 1, LastLine: 1000, ShownNext: new(370),
		Content: viewed(1, 1000, 1000, strings.Repeat("x", 40))}
	checkGolden(t, "open_rest_of_section", tool.OpenText(files.Opening{Files: []files.Opened{long}}, false))
	long.NextOffset, long.ShownNext = new(500), nil
	if got := tool.OpenText(files.Opening{Files: []files.Opened{long}}, false); strings.Contains(got, "To go on, call") {
		t.Errorf("the prompt shows all of it, but: %s", got)
	}
}

func TestOpenTextWithContentFits(t *testing.T) {
	t.Parallel()
	var opening files.Opening
	for i := range 3 {
		opening.Files = append(opening.Files, files.Opened{
			Name: fmt.Sprintf("docs/%d.md", i), FirstLine: 1, LastLine: 400, Content: viewed(1, 400, 400,
				strings.Repeat("é", 45)),
		})
	}
	got := tool.OpenText(opening, true)
	if n := utf8.RuneCountInString(got); n > tool.MaxChars || n < tool.MaxChars-100 {
		t.Errorf("%d characters, want just up to %d", n, tool.MaxChars)
	}
	if strings.Contains(got, "The view of docs/0.md") || strings.Contains(got, "The view of docs/1.md") {
		t.Errorf("files that fit are said not to: %.500s", got)
	}
	last := got[strings.LastIndexByte(got, '\n')+1:]
	var shown int
	if _, err := fmt.Sscanf(last, "%d: ", &shown); err != nil || utf8.RuneCountInString(last) != 50 {
		t.Fatalf("the last line is %q, want a whole line", last)
	}
	for _, want := range []string{
		fmt.Sprintf("\nNote: The view of docs/2.md stops before line %d.", shown+1),
		fmt.Sprintf(`open_files(file_requests=[{"file_name":"docs/2.md","line":%d}], include_content=true)`, shown+1),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q: %.500s", want, got)
		}
	}
	if opening.Files[2].NextOffset != nil || opening.Files[2].LastLine != 400 {
		t.Errorf("the opening itself was changed: %+v", opening.Files[2])
	}
}

// A line that fits into no result is shown in part, and the call for the rest continues within the line. A prompt shows
// no part of a line but its beginning: what follows it there is the next line.
func TestOpenTextGetsPastALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é", tool.MaxChars-200)
	for _, tt := range []struct {
		name   string
		last   int
		next   *int
		prompt string
	}{
		{"lines follow in what was returned", 2, nil, `"line":2`},
		{"lines follow beyond what was returned", 1, new(1), `"line":2`},
		{"nothing follows", 1, nil, ""},
		{"nothing follows but the line's own end", 1, new(-1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := files.Opened{Name: strings.Repeat("n", 300), FirstLine: 1, LastLine: tt.last, NextOffset: tt.next,
				Content: viewed(1, tt.last, 2, text)}
			if tt.prompt != "" { // the prompt's view stops there, too
				f.ShownNext = new(1)
			}
			for _, content := range []bool{true, false} {
				got := tool.OpenText(files.Opening{Files: []files.Opened{f}}, content)
				if n := utf8.RuneCountInString(got); n > tool.MaxChars ||
					strings.Contains(got, "[NOTE: function output was truncated") {
					t.Errorf("content %t: %d characters: %.400s", content, n, got)
				}
				want := tt.prompt
				if content {
					_, part, _ := strings.Cut(got, "1: é")
					shown := 1 + strings.Count(part, "é")
					want = fmt.Sprintf(`"line":1,"char":%d}`, shown)
				}
				if has := strings.Contains(got, "To go on, call"); has != (want != "") || !strings.Contains(got, want) {
					t.Errorf("content %t: want the call for the rest with %q: %.900s", content, want, got)
				}
				if content && !strings.HasSuffix(got, "éé...[TRUNCATED]") {
					t.Errorf("it ends in %q, want a part of the line and a mark", got[len(got)-40:])
				}
			}
		})
	}
}

// If a model follows the calls that the results name, it sees every line of the opened files, in order, and only whole
// lines.
func TestOpenCallsLeadToTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 400).Draw(t, "lines")
		chars := rapid.IntRange(1, 2000).Draw(t, "chars per line")
		returned := rapid.IntRange(1, total).Draw(t, "lines that Open returns")
		first := 1
		for calls := 0; first <= total; calls++ {
			last := min(first+returned-1, total)
			f := files.Opened{Name: "docs/a.md", FirstLine: first, LastLine: last,
				Content: viewed(first, last, total, strings.Repeat("é", chars))}
			if last < total {
				f.NextOffset = new(last)
			}
			got := tool.OpenText(files.Opening{Files: []files.Opened{f}}, true)
			_, shown, _ := strings.Cut(got, "=== docs/a.md ===\n")
			lines := strings.Split(shown, "\n")[1:]
			for _, l := range lines {
				if !strings.HasPrefix(l, fmt.Sprintf("%d: é", first)) {
					t.Fatalf("call %d shows %.20q, want line %d", calls, l, first)
				}
				first++
			}
			_, next, more := strings.Cut(got, `"line":`)
			if len(lines) == 0 || more != (first <= total) || more && !strings.HasPrefix(next, fmt.Sprintf("%d}", first)) {
				t.Fatalf("after line %d of %d the call for the rest is %.10q", first-1, total, next)
			}
		}
	})
}

// A line is cut only if it would not fit on its own. A line that lacks room because of other lines is left to the next
// call.
func TestOpenTextCutsNoLineForWantOfRoom(t *testing.T) {
	t.Parallel()
	opening := files.Opening{Files: []files.Opened{
		{Name: "docs/a.md", FirstLine: 1, LastLine: 1, Content: viewed(1, 1, 1, strings.Repeat("é", tool.MaxChars-10_000))},
		{Name: "docs/b.md", FirstLine: 1, LastLine: 2, Content: viewed(1, 2, 2, strings.Repeat("é", 10_000))},
	}}
	got := tool.OpenText(opening, true)
	if !strings.HasSuffix(got, "\n=== docs/b.md ===\n(its lines do not fit here)") || strings.Contains(got, "TRUNCATED") {
		t.Errorf("it ends in %q, want nothing of docs/b.md and nothing cut", got[len(got)-100:])
	}
	want := `open_files(file_requests=[{"file_name":"docs/b.md","line":1}], include_content=true)`
	if !strings.Contains(got, want) {
		t.Errorf("the text lacks %q: %.400s", want, got)
	}
}
