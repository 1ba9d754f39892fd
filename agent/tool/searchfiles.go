package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

const (
	searchLimit   = 5
	maxChunkLines = 100 // lines of a chunk in a result; any of them may be the answer (Letta: 20)
)

type searchArgs struct {
	Query   text    `json:"query"`
	Limit   *number `json:"limit"`
	Offset  *number `json:"offset"`
	Include text    `json:"include"`

	Filter condition `json:"filter"`
}

// query checks the arguments and returns the query. Like Letta, it lowers a limit above files.SearchMax to that.
func (a searchArgs) query() (files.Query, error) {
	limit, err := lowered(a.Limit, searchLimit, files.SearchMax)
	if err != nil {
		return files.Query{}, err
	}
	offset, err := skipped(a.Offset)
	return files.Query{Text: string(a.Query), Limit: limit, Offset: offset, Include: string(a.Include)}, err
}

func (m Memories) searchFiles(ctx context.Context, c Caller, a searchArgs) (Result, error) {
	query, err := a.query()
	if err == nil && strings.TrimSpace(query.Text) == "" {
		err = db.Invalid("Empty search query provided: give query, the words or the question to search for.")
	}
	if err != nil {
		return Result{}, err
	}
	query.Narrowing = files.Narrowing{Filter: a.Filter.json(), Zone: c.Agent.Zone()}
	found, err := m.Files.Search(ctx, c.Org, c.folders(), query)
	return Result{Text: searchText(query, found, c.has(), c.maxChars())}, err
}

// searchText shows chunks, the best first.
func searchText(q files.Query, r files.Results, has recall.Toolset, chars int) string {
	note := remarks(r.SearchedFor, r.Note, r.WhyEnded(), r.Ranking == files.ByWords)
	switch {
	case !r.Attached && q.Include != "":
		return fmt.Sprintf("No attached files match the filename pattern '%s'%s", echo(q.Include), includeHint(q.Include))
	case !r.Attached && q.Filter != nil:
		return "No attached files fit the filter"
	case !r.Attached:
		return "No files are currently attached to search"
	case r.Wordless:
		return r.WhyNothing() + remarks("", r.Note, r.WhyEnded(), false)
	case len(r.Hits) == 0:
		return noHits(q) + note
	}
	return mostHits(chars, len(r.Hits), func(show shownHits) string { return searchPage(q, r, show, has) + note })
}

func noHits(q files.Query) string {
	s := fmt.Sprintf("No passages found for query: '%s'", echo(q.Text))
	if q.Offset > 0 {
		return fmt.Sprintf("%s at offset %d. To see the first, repeat the call with offset=0.", s, q.Offset)
	}
	if q.Include == "" && q.Filter != nil {
		return s + " in files that fit the filter. Search without it, or ask in other words."
	}
	if q.Include != "" {
		s += fmt.Sprintf(" in files matching '%s'. Search without include, or ask in other words.", echo(q.Include))
	} else {
		s += ". Ask in other words."
	}
	return s
}

// searchPage shows the best hits.
func searchPage(q files.Query, r files.Results, show shownHits, has recall.Toolset) string {
	head := fmt.Sprintf("Found %s in %s for query: '%s', the best first", count(len(r.Hits), "passage"),
		count(fileCount(r.Hits), "file"), echo(q.Text))
	var b strings.Builder
	b.WriteString(head + "\n" + strings.Repeat("=", utf8.RuneCountInString(head)) + "\n")
	for _, h := range r.Hits[:show.n] {
		b.WriteString(hitText(h, q.Text, show.chars, has))
	}
	b.WriteString(show.cutNote("limit"))
	if omitted := len(r.Hits) - show.n; omitted > 0 {
		fmt.Fprintf(&b, "\nNote: the %d lowest-ranked matches did not fit here. Ask for fewer, or narrow the search with "+
			"include.", omitted)
	}
	b.WriteString(nextPage(q.Offset, show.n, r.More || show.n < len(r.Hits)))
	return strings.TrimSuffix(b.String(), "\n")
}

func fileCount(hits []files.Hit) int {
	seen := map[string]bool{}
	for _, h := range hits {
		seen[h.FileID] = true
	}
	return len(seen)
}

// hitText shows so many characters of a chunk under a head; only the head if that is 0.
func hitText(h files.Hit, query string, chars int, has recall.Toolset) string {
	var b strings.Builder
	place := fmt.Sprintf("lines %d-%d", h.FirstLine, h.LastLine)
	if pages := h.Pages(); pages.First > 0 {
		place = pages.String() + ", " + place
	}
	head := fmt.Sprintf("=== %s (%s) ===\n", fileName(h.FileName), place)
	if chars == 0 {
		return head
	}
	b.WriteString("\n" + head)
	if h.Heading != "" {
		fmt.Fprintf(&b, "Section: %s\n", echo(h.Heading))
	}
	if short := excerpt(h.Text, query, chars); short != h.Text {
		lines := nextRequest{FileName: h.FileName, Line: h.FirstLine, Length: new(max(h.LastLine-h.FirstLine+1, 1))}
		b.WriteString(indented(short) + has.Hint("open_files", "  To read them, call: "+openCall(lines, true)+"\n"))
		return b.String()
	}
	lines := strings.Split(strings.TrimRight(h.Text, "\n"), "\n")
	b.WriteString(indented(strings.Join(lines[:min(len(lines), maxChunkLines)], "\n")))
	if omitted := len(lines) - maxChunkLines; omitted > 0 {
		next := h.FirstLine - 1 + maxChunkLines
		rest := nextRequest{FileName: h.FileName, Line: next + 1, Length: new(max(h.LastLine-next, 1))}
		fmt.Fprintf(&b, "  "+frame.LinesTruncated+"\n%s", omitted,
			has.Hint("open_files", "To read them, call: "+openCall(rest, true)+"\n"))
	}
	return b.String()
}
