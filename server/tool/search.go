package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

const (
	searchLimit   = 5
	maxChunkLines = 100 // of a chunk in a result: the line that was found may be any of them (Letta: 20)
)

type searchArgs struct {
	Query   text    `json:"query"`
	Limit   *number `json:"limit"`
	Offset  *number `json:"offset"`
	Include text    `json:"include"`
}

// query checks the arguments. A limit above the most is the most, as in Letta.
func (a searchArgs) query() (files.Query, error) {
	if strings.TrimSpace(string(a.Query)) == "" {
		return files.Query{}, db.Invalid("Empty search query provided")
	}
	limit, err := limited(a.Limit, searchLimit, files.SearchMax)
	if err != nil {
		return files.Query{}, err
	}
	offset, err := skipped(a.Offset)
	return files.Query{Text: string(a.Query), Limit: limit, Offset: offset, Include: string(a.Include)}, err
}

// maxOffset is the most results that a search leaves out.
const maxOffset = 10_000

// skipped is an offset as asked for, from 0 to maxOffset.
func skipped(asked *number) (int, error) {
	offset := int(deref(asked, 0))
	if offset < 0 || offset > maxOffset {
		return 0, db.Invalid("offset must be between 0 and %d, got %d", maxOffset, offset)
	}
	return offset, nil
}

// nextPage says how to read the results behind the n shown; nothing if there are none.
func nextPage(offset, n int, more bool) string {
	if !more {
		return ""
	}
	return fmt.Sprintf("\nTo see the next results, repeat the call with offset=%d.\n", offset+n)
}

func (m Memories) searchFiles(ctx context.Context, c Caller, a searchArgs) (Result, error) {
	query, err := a.query()
	if err != nil {
		return Result{}, err
	}
	found, err := m.Files.Search(ctx, c.Org, c.Agent.ID, query)
	return Result{Text: searchText(query, found, c.has())}, err
}

// searchText shows chunks, the best first.
func searchText(q files.Query, r files.Results, has recall.Toolset) string {
	switch {
	case !r.Attached && q.Include != "":
		return fmt.Sprintf("No attached files match the filename pattern '%s'", echo(q.Include))
	case !r.Attached:
		return "No files are currently attached to search"
	case len(r.Hits) == 0:
		return noHits(q) + rankingNote(r)
	}
	return most(len(r.Hits), func(n int) string { return searchPage(q, r, n, has) })
}

func noHits(q files.Query) string {
	s := fmt.Sprintf("No passages found for query: '%s'", echo(q.Text))
	if q.Offset > 0 {
		return fmt.Sprintf("%s at offset %d. To see the first, repeat the call with offset=0.", s, q.Offset)
	}
	if q.Include != "" {
		s += fmt.Sprintf(" in files matching '%s'. Search without include, or ask in other words.", echo(q.Include))
	} else {
		s += ". Ask in other words."
	}
	return s
}

// searchPage shows the n best hits.
func searchPage(q files.Query, r files.Results, n int, has recall.Toolset) string {
	head := fmt.Sprintf("Found %s in %s for query: '%s', the best first", count(len(r.Hits), "passage"),
		count(fileCount(r.Hits), "file"), echo(q.Text))
	var b strings.Builder
	b.WriteString(head + "\n" + strings.Repeat("=", utf8.RuneCountInString(head)) + "\n")
	for _, h := range r.Hits[:n] {
		b.WriteString("\n" + hitText(h, has))
	}
	if left := len(r.Hits) - n; left > 0 {
		fmt.Fprintf(&b, "\nNote: the %d lowest-ranked matches did not fit here. Ask for fewer, or narrow the search with "+
			"include.", left)
	}
	b.WriteString(nextPage(q.Offset, n, r.More || n < len(r.Hits)))
	return strings.TrimSuffix(b.String(), "\n") + rankingNote(r)
}

func fileCount(hits []files.Hit) int {
	seen := map[string]bool{}
	for _, h := range hits {
		seen[h.FileID] = true
	}
	return len(seen)
}

// hitText shows a chunk. Its lines are indented, which keeps them from being taken for a head.
func hitText(h files.Hit, has recall.Toolset) string {
	var b strings.Builder
	place := fmt.Sprintf("lines %d-%d", h.FirstLine, h.LastLine)
	if pages := h.Pages(); pages.First > 0 {
		place = pages.String() + ", " + place
	}
	fmt.Fprintf(&b, "=== %s (%s) ===\n", fileName(h.FileName), place)
	if h.Heading != "" {
		fmt.Fprintf(&b, "Section: %s\n", echo(h.Heading))
	}
	lines := strings.Split(strings.TrimRight(h.Text, "\n"), "\n")
	for _, l := range lines[:min(len(lines), maxChunkLines)] {
		b.WriteString("  " + line(l) + "\n")
	}
	if left := len(lines) - maxChunkLines; left > 0 {
		next := h.FirstLine - 1 + maxChunkLines
		rest := nextRequest{FileName: h.FileName, Line: next + 1, Length: new(max(h.LastLine-next, 1))}
		fmt.Fprintf(&b, "  ... [truncated %d more lines]\n%s", left,
			has.Hint("open_files", "To read them, call: "+openCall(rest, true)+"\n"))
	}
	return b.String()
}

// rankingNote says what the ranking lacks, in one line; nothing if it lacks nothing.
func rankingNote(r files.Results) string {
	switch {
	case r.Note != "":
		return "\n\nNote: " + line(r.Note)
	case r.Ranking == files.ByWords:
		return "\n\nNote: Ranked by words (no embeddings endpoint is configured)."
	}
	return ""
}
