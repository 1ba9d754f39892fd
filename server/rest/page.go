package rest

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/db"
)

// Paging selects a page of a list.
type Paging struct {
	Before string `query:"before" doc:"Items before this id, in the order asked for."`
	After  string `query:"after" doc:"Items after this id; also of an item that was deleted within the last day."`
	Limit  Limit  `query:"limit" minimum:"0" doc:"How many items at most; more than 1,000 are 1,000."`
	Order  string `query:"order" enum:"asc,desc" doc:"Oldest first, or newest first."`
}

// The orders of a list.
const (
	OldestFirst = "asc"
	NewestFirst = "desc"
)

// MaxPage is the most items in a list without pages.
const MaxPage = 1000

// Limit is how many items a caller asks for. As in Letta, 0 asks for none, and more than MaxPage for MaxPage.
type Limit = Opt[int]

// LimitOf returns the limit of a page; preset if the caller gave none.
func LimitOf(asked Limit, preset int) int {
	switch {
	case !asked.Set || asked.Null:
		return preset
	case asked.Value == 0:
		return db.NoItems
	}
	return min(asked.Value, MaxPage)
}

// Page returns the page that the caller asked for. limit and order apply where the caller gave none.
func (p Paging) Page(limit int, order string) db.Page {
	return db.Page{Before: p.Before, After: p.After, Limit: LimitOf(p.Limit, limit),
		Ascending: cmp.Or(p.Order, order) == OldestFirst}
}

// Each returns show(item) for each item of a list; never nil.
func Each[T, S any](list []T, show func(T) S) []S {
	shown := make([]S, len(list))
	for i, item := range list {
		shown[i] = show(item)
	}
	return shown
}

// FillPage reads a page of a list in which some items are hidden: it reads on until p.Limit items are shown, or until
// the list ends. show returns the visible parts of an item, none for a hidden one. An empty page means the end of the
// list.
func FillPage[T, S any](
	p db.Page, id func(T) string, read func(db.Page) ([]T, error), show func(T) []S,
) ([][]S, error) {
	shown := [][]S{}
	if p.Limit == db.NoItems {
		return shown, nil
	}
	backwards := p.Before != "" && p.After == "" // pages before an id are read from their end
	for wanted := p.Limit; ; p.Limit = min(2*p.Limit, MaxPage) {
		list, err := read(p)
		if err != nil {
			return nil, err
		}
		if backwards {
			slices.Reverse(list)
		}
		for _, item := range list {
			if parts := show(item); len(parts) > 0 && len(shown) < wanted {
				shown = append(shown, parts)
			}
		}
		if len(shown) == wanted || len(list) < p.Limit {
			break
		}
		if last := id(list[len(list)-1]); backwards {
			p.Before = last
		} else {
			p.After = last
		}
	}
	if backwards {
		slices.Reverse(shown)
	}
	return shown, nil
}

// Paged returns a page of a list that is in memory in ascending order.
func Paged[T any](list []T, p db.Page, id func(T) string) []T {
	if p.Limit == db.NoItems {
		return []T{}
	}
	list = append([]T{}, list...)
	if !p.Ascending {
		slices.Reverse(list)
	}
	index := func(sought string) int {
		return slices.IndexFunc(list, func(item T) bool { return id(item) == sought })
	}
	if p.Before != "" {
		list = list[:max(index(p.Before), 0)]
	}
	if p.After != "" {
		i := index(p.After)
		if i < 0 {
			return []T{}
		}
		list = list[i+1:]
	}
	if p.Before != "" && p.After == "" {
		return list[max(len(list)-p.Limit, 0):]
	}
	return list[:min(p.Limit, len(list))]
}
