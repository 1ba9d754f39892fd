package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

const (
	contextLines = 1  // lines shown before and after a match by default
	maxCounts    = 50 // a result lists the number of matches for at most so many files
)

type grepArgs struct {
	Pattern       selection `json:"pattern"`
	Include       text      `json:"include"`
	ContextLines  *number   `json:"context_lines"`
	Offset        start     `json:"offset"`
	CaseSensitive flag      `json:"case_sensitive"`
	Literal       flag      `json:"literal"`
}

func (m Memories) grepFiles(ctx context.Context, c Caller, a grepArgs) (Result, error) {
	if strings.TrimSpace(string(a.Pattern)) == "" {
		return Result{}, db.Invalid(`Empty search pattern provided: give pattern, such as "error|fail".`)
	}
	var query files.GrepQuery
	var found files.GrepResult
	all := readings(string(a.Pattern))
	if pattern, ok := withOptionalMarks(string(a.Pattern)); ok && !bool(a.Literal) {
		all = append(all, pattern)
	}
	for i, pattern := range all {
		q := a.query(pattern)
		again, err := m.Files.Grep(ctx, c.Org, c.folders(), q)
		if i == 0 && err != nil {
			return Result{}, err
		}
		if i == 0 || err == nil && again.Total > 0 {
			query, found = q, again
		}
		if found.Total > 0 {
			break
		}
	}
	bounds, err := m.readBounds(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: grepText(query, found, c.has(), bounds, c.maxChars())}, nil
}

// query returns the search that the arguments ask for. pattern is one way to read the pattern of the call.
func (a grepArgs) query(pattern string) files.GrepQuery {
	return files.GrepQuery{Pattern: pattern, Include: string(a.Include), Offset: int(a.Offset),
		ContextLines:  int(deref(a.ContextLines, contextLines)),
		CaseSensitive: bool(a.CaseSensitive), Literal: bool(a.Literal)}
}

// grepText shows a page of matches. If the matches do not all fit into a result, the page is shorter, and the next page
// begins where it ends.
func grepText(q files.GrepQuery, r files.GrepResult, has recall.Toolset, bounds *policy.ReadBounds,
	chars int) string {
	switch {
	case r.Attached == 0:
		return "No files are currently attached to search"
	case r.Searched+r.Waiting == 0:
		return fmt.Sprintf("No files match the filename pattern '%s' (filtered %d files)%s", echo(q.Include), r.Attached,
			includeHint(q.Include))
	case r.Total == 0:
		return noMatches(q, r) + waitingNote(r, has)
	case len(r.Matches) == 0:
		return pastTheEnd(q, r)
	}
	return mostWithin(chars, bounds, len(r.Matches), func(n int) string { return grepPage(q, r, n, has, bounds) })
}

func noMatches(q files.GrepQuery, r files.GrepResult) string {
	s := fmt.Sprintf("No matches found for pattern: '%s'", line(q.Pattern))
	if q.Include != "" {
		s += fmt.Sprintf(" in files matching '%s'", echo(q.Include))
	}
	if r.Waiting > 0 {
		s += fmt.Sprintf(" (searched %d files, skipped %d)", r.Searched, r.Waiting)
	}
	return s + ". Try a shorter pattern or another spelling."
}

// waitingNote counts the files without text: files that are still being processed, and files that could not be read.
func waitingNote(r files.GrepResult, has recall.Toolset) string {
	why := has.Hint("list_files", "; list_files shows why")
	switch r.Waiting {
	case 0:
		return ""
	case 1:
		return "\nNote: 1 file has no text yet and was not searched" + why + "."
	}
	return fmt.Sprintf("\nNote: %d files have no text yet and were not searched%s.", r.Waiting, why)
}

func pastTheEnd(q files.GrepQuery, r files.GrepResult) string {
	s := fmt.Sprintf("No matches at offset %d: there are %s total matches across %d files.", q.Offset,
		total(r.Total, r.Capped), len(r.Files))
	if r.Capped {
		s += "\n" + capNote
	}
	return s + "\nTo see the last matches, call: " + grepCall(q, max(r.Total-files.GrepPage, 0))
}

// capNote says that a search stopped after files.GrepCap matches.
var capNote = fmt.Sprintf("Note: Only the first %d matches were collected. "+
	"There may be more matches beyond this limit.", files.GrepCap)

// total returns a count as text, with a + if there may be more.
func total(n int, capped bool) string {
	if capped {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

// grepPage shows the first n matches of a page.
func grepPage(q files.GrepQuery, r files.GrepResult, n int, has recall.Toolset, bounds *policy.ReadBounds) string {
	all, next := total(r.Total, r.Capped), q.Offset+n
	var b strings.Builder
	fmt.Fprintf(&b, "Found %s total matches across %d files (showing matches %d-%d of %s)", all, len(r.Files), q.Offset+1,
		next, all)
	b.WriteString(waitingNote(r, has))
	if r.Capped && next < r.Total {
		b.WriteString("\n" + capNote)
	}
	b.WriteString("\n" + rule + "\n\nFiles with matches:\n" + counts(r) + "\n")
	for _, g := range grouped(r.Matches[:n]) {
		if bounds != nil {
			g.cutLines(bounds.MaxMatchChars)
		}
		b.WriteString("\n" + g.String())
	}
	return b.String() + "\n" + lastLine(q, r, next)
}

func lastLine(q files.GrepQuery, r files.GrepResult, next int) string {
	switch {
	case next < r.Total:
		return "To see more matches, call: " + grepCall(q, next)
	case r.Capped:
		return "Showing last page of collected matches. There may be more matches beyond the collection limit."
	}
	return "No more matches to show."
}

func counts(r files.GrepResult) string {
	var b strings.Builder
	for _, f := range r.Files[:min(len(r.Files), maxCounts)] {
		fmt.Fprintf(&b, "  - %s: %s matches\n", fileName(f.FileName), total(f.Matches, r.Capped))
	}
	if omitted := len(r.Files) - maxCounts; omitted > 0 {
		fmt.Fprintf(&b, "  ... and %d more files\n", omitted)
	}
	return b.String()
}

// grepCall returns the call that continues the search q at an offset.
func grepCall(q files.GrepQuery, offset int) string {
	return invocation("grep_files",
		argument{"pattern", q.Pattern, nil},
		argument{"include", q.Include, ""},
		argument{"context_lines", q.ContextLines, contextLines},
		argument{"case_sensitive", q.CaseSensitive, false},
		argument{"literal", q.Literal, false},
		argument{"offset", offset, nil})
}
