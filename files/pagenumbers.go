package files

import (
	"fmt"
	"sort"
	"strings"
)

// Pages is a range of pages of a file, from 1 and inclusive. It is zero if the file has no pages.
type Pages struct {
	Word        string // page, slide or sheet
	First, Last int
}

// String returns "page 3", "pages 3-4" or, for the zero Pages, "".
func (p Pages) String() string {
	switch p.First {
	case 0:
		return ""
	case p.Last:
		return fmt.Sprintf("%s %d", p.Word, p.First)
	}
	return fmt.Sprintf("%ss %d-%d", p.Word, p.First, p.Last)
}

// Paging says where the pages of a file begin.
type Paging struct {
	Starts    []int  `db:"pages"` // first line of each page, ascending; nil if the file has no pages
	MediaType string `db:"media_type"`
}

// Of returns the pages of a range of lines, which is from 1 and inclusive. Lines before the first page belong to the
// first page.
func (p Paging) Of(first, last int) Pages {
	if len(p.Starts) == 0 {
		return Pages{}
	}
	return Pages{Word: pageWord(p.MediaType), First: p.of(first), Last: max(p.of(first), p.of(last))}
}

func (p Paging) of(line int) int {
	return max(1, sort.Search(len(p.Starts), func(i int) bool { return p.Starts[i] > line }))
}

// stored returns the page of a line as chunks store it: nil if the file has no pages.
func (p Paging) stored(line int) *int {
	if len(p.Starts) == 0 {
		return nil
	}
	return new(p.of(line))
}

// note returns the pages of lines and the total number of pages, after a comma. It is empty if the file has no pages.
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
