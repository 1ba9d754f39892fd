package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

const (
	listLimit    = 50
	maxListLimit = 200
)

type listArgs struct {
	Pattern text    `json:"pattern"`
	Folder  text    `json:"folder"`
	Offset  start   `json:"offset"`
	Limit   *number `json:"limit"`
}

// listQuery is the query of a call. The result repeats the call and the filter.
type listQuery struct{ files.ListQuery }

func (m Memories) listFiles(ctx context.Context, c Caller, a listArgs) (Result, error) {
	limit, err := limited(a.Limit, listLimit, maxListLimit)
	if err != nil {
		return Result{}, err
	}
	q := listQuery{files.ListQuery{Include: string(a.Pattern), Folder: string(a.Folder), Offset: int(a.Offset),
		Limit: limit}}
	found, err := m.Files.List(ctx, c.Org, c.folders(), q.ListQuery)
	if errors.Is(err, db.ErrInvalid) {
		err = db.Invalid("%s", strings.Replace(err.Error(), "Invalid include", "Invalid pattern", 1))
	}
	return Result{Text: listText(q, found, c.maxChars())}, err
}

// listText shows a page of files. If the files do not all fit into a result, the page is shorter, and the next page
// begins where it ends.
func listText(q listQuery, l files.Listing, chars int) string {
	switch {
	case l.Total == 0 && q.Include == "" && q.Folder == "":
		return "No files are currently attached"
	case l.Total == 0:
		return "No attached files" + q.filter() + includeHint(q.Include) + ". To see all of them, call: list_files()"
	case len(l.Files) == 0:
		return fmt.Sprintf("No files at offset %d: there are %s%s. To see the last ones, call: %s", q.Offset,
			count(l.Total, "attached file"), q.filter(), q.call(max(l.Total-q.Limit, 0)))
	}
	return most(chars, len(l.Files), func(n int) string { return listPage(q, l, n) })
}

// listPage shows the first n files of a page.
func listPage(q listQuery, l files.Listing, n int) string {
	next := q.Offset + n
	var b strings.Builder
	fmt.Fprintf(&b, "Found %s%s (showing files %d-%d of %d)\n%s\n", count(l.Total, "attached file"), q.filter(),
		q.Offset+1, next, l.Total, rule)
	for _, f := range l.Files[:n] {
		b.WriteString(listed(f))
	}
	if next < l.Total {
		return b.String() + "\nTo see more files, call: " + q.call(next)
	}
	return b.String() + "\nNo more files to show."
}

func (q listQuery) filter() string {
	var s string
	if q.Include != "" {
		s += fmt.Sprintf(" matching '%s'", echo(q.Include))
	}
	if q.Folder != "" {
		s += fmt.Sprintf(" in folder '%s'", echo(q.Folder))
	}
	return s
}

func (q listQuery) call(offset int) string {
	return invocation("list_files",
		argument{"pattern", q.Include, ""},
		argument{"folder", q.Folder, ""},
		argument{"limit", q.Limit, listLimit},
		argument{"offset", offset, 0})
}

func listed(f files.Listed) string {
	open := "closed"
	if f.IsOpen {
		open = "open"
	}
	text := fmt.Sprintf("  - [%s] %s: %s\n", open, fileName(f.FileName), state(f))
	if left := f.LeftOut(); left != "" {
		text += "    not in its text: " + line(left) + "\n"
	}
	if read := f.ReadByPrograms(); read != "" {
		text += "    read by " + line(read) + "\n"
	}
	if guess := f.GuessedEncoding(); guess != "" {
		text += "    its encoding is " + line(guess) + "\n"
	}
	return text
}

// state returns whether a file can be read, and its size.
func state(f files.Listed) string {
	size := fmt.Sprintf("%s, %s", count(int(f.SizeBytes), "byte"), line(f.MediaType))
	switch f.Status {
	case files.Failed:
		if f.Failure != nil {
			return "could not be read, " + size + "\n    why: " + line(*f.Failure)
		}
		return "could not be read, " + size
	case files.Pending, files.Parsing:
		return "still being processed, " + size
	}
	return count(f.Lines, "line") + ", " + size
}
