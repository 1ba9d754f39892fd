package files

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Pages are the pages of a file that something stands on, 1-based and inclusive; the zero Pages where it has none.
type Pages struct {
	Word        string // what they are called: page, slide or sheet
	First, Last int
}

// String is as "page 3" or "pages 3-4"; empty for the zero Pages.
func (p Pages) String() string {
	switch p.First {
	case 0:
		return ""
	case p.Last:
		return fmt.Sprintf("%s %d", p.Word, p.First)
	}
	return fmt.Sprintf("%ss %d-%d", p.Word, p.First, p.Last)
}

// Paging is where the pages of a file begin.
type Paging struct {
	Starts    []int  `db:"pages"` // the first line of each, ascending; nil where the file has no pages
	MediaType string `db:"media_type"`
}

// Of are the pages of lines, 1-based and inclusive. What stands before the first page counts as its.
func (p Paging) Of(first, last int) Pages {
	if len(p.Starts) == 0 {
		return Pages{}
	}
	return Pages{Word: pageWord(p.MediaType), First: p.of(first), Last: max(p.of(first), p.of(last))}
}

func (p Paging) of(line int) int {
	return max(1, sort.Search(len(p.Starts), func(i int) bool { return p.Starts[i] > line }))
}

// stored is the page of a line as it is stored: nil where the file has none.
func (p Paging) stored(line int) *int {
	if len(p.Starts) == 0 {
		return nil
	}
	return new(p.of(line))
}

// note says on which of all pages lines are, after a comma; empty where the file has no pages.
func (p Paging) note(first, last int) string {
	if len(p.Starts) == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of %d", p.Of(first, last), len(p.Starts))
}

func pageWord(mediaType string) string {
	switch {
	case strings.Contains(mediaType, "presentation"):
		return "slide"
	case strings.Contains(mediaType, "spreadsheet"):
		return "sheet"
	}
	return "page"
}

// addPages gives matches their pages.
func (s *Store) addPages(ctx context.Context, org db.Org, fileIDs []string, matches []GrepMatch) error {
	type named struct {
		Paging
		Name string `db:"name"`
	}
	paged, err := db.All[named](ctx, s.db, `
		SELECT d.name || '/' || f.name AS name, f.pages, f.media_type
		FROM files f JOIN folders d ON d.key = f.folder_key AND d.org = f.org
		WHERE f.org = $1 AND f.id = ANY ($2) AND f.pages IS NOT NULL`, org, fileIDs)
	if err != nil {
		return err
	}
	for _, f := range paged {
		for i, m := range matches {
			if m.FileName == f.Name {
				matches[i].Pages = f.Of(m.Line, m.Line)
			}
		}
	}
	return nil
}
