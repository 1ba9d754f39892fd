package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/files"
)

func TestListText(t *testing.T) {
	t.Parallel()
	some := []files.Listed{
		{FileName: "docs/a.md", Status: files.Completed, MediaType: "text/markdown", SizeBytes: 4096, Lines: 120,
			IsOpen: true, Omitted: []files.Omission{{Kind: "picture without text", Count: 5, Where: "pages 3–5, 9"},
				{Kind: "hidden sheet", Count: 1, Where: "sheet Costs\n  - [open] x.md"}}},
		{FileName: "docs/b.csv", Status: files.Embedding, MediaType: "text/csv", SizeBytes: 1, Lines: 1,
			Encoding: new("windows-1250"), Sure: new(0.62)},
		{FileName: "docs/c.html", Status: files.Parsing, MediaType: "text/html", SizeBytes: 900, Encoding: new("utf-8"),
			Sure: new(1.0)},
		{FileName: "docs/d.txt", Status: files.Failed, MediaType: "text/plain", SizeBytes: 0},
		{FileName: "docs/e\n  - [open] f.md", Status: files.Pending, MediaType: "text/x\n  - [open] y", SizeBytes: 2},
	}
	for _, tt := range []struct {
		name            string
		pattern, folder string
		offset, limit   int
		listing         files.Listing
	}{
		{"list_none", "", "", 0, 50, files.Listing{}},
		{"list_none_fit", "*.rs", "manual", 0, 50, files.Listing{}},
		{"list", "", "", 0, 50, files.Listing{Files: some, Total: 5}},
		{"list_one", "", "", 0, 50, files.Listing{Files: some[:1], Total: 1}},
		{"list_more", "*.md", `the "manual"`, 10, 5, files.Listing{Files: some, Total: 40}},
		{"list_past_the_end", "*.md", "", 60, 50, files.Listing{Total: 40}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, tt.name, tool.ListText(tt.pattern, tt.folder, tt.offset, tt.limit, tt.listing))
		})
	}
}

func TestAListThatDoesNotFitNamesWhereTheNextBegins(t *testing.T) {
	t.Parallel()
	l := files.Listing{Total: 300}
	for i := range 200 {
		l.Files = append(l.Files, files.Listed{FileName: fmt.Sprintf("docs/%d%s", i, strings.Repeat("é", 500)),
			Status: files.Completed})
	}
	got := tool.ListText("", "", 50, 200, l)
	if n := utf8.RuneCountInString(got); n > tool.MaxChars {
		t.Errorf("%d characters, want at most %d", n, tool.MaxChars)
	}
	shown := strings.Count(got, "\n  - ")
	if want := fmt.Sprintf("list_files(limit=200, offset=%d)", 50+shown); shown < 50 || !strings.HasSuffix(got, want) {
		t.Errorf("%d files are shown, and the text ends in %q, want %q", shown, got[len(got)-60:], want)
	}
}

func TestCloseText(t *testing.T) {
	t.Parallel()
	checkGolden(t, "close_none", tool.CloseText(nil, false))
	checkGolden(t, "close_all_none", tool.CloseText(nil, true))
	checkGolden(t, "close", tool.CloseText([]string{"docs/a.md", "docs/b\n* Opened c.md"}, false))
}
