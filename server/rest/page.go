package rest

import (
	"slices"

	"github.com/loci-memory/loci/db"
)

// Paging is how a caller asks for a stretch of a list.
type Paging struct {
	Before string `query:"before" doc:"Items before the one with this id, in the order asked for."`
	After  string `query:"after" doc:"Items after the one with this id, in the order asked for. After an item that was deleted within the last day, the list goes on from where it stood. An id that was never in the list gives an empty page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"How many items at most."`
	Order  string `query:"order" enum:"asc,desc" doc:"Oldest first, or newest first."`
}

// The orders of a list that is asked for none.
const (
	OldestFirst = "asc"
	NewestFirst = "desc"
)

// MaxPage is the most items of a list that has no pages.
const MaxPage = 1000

// Page is what is asked for, with a list's own limit and order where the caller names none.
func (p Paging) Page(limit int, order string) db.Page {
	if p.Limit > 0 {
		limit = p.Limit
	}
	if p.Order != "" {
		order = p.Order
	}
	return db.Page{Before: p.Before, After: p.After, Limit: limit, Ascending: order == OldestFirst}
}

// Paged is a page of a list that is not in the database, given in ascending order.
func Paged[T any](list []T, p db.Page, id func(T) string) []T {
	list = append([]T{}, list...)
	if !p.Ascending {
		slices.Reverse(list)
	}
	at := func(wanted string) int {
		return slices.IndexFunc(list, func(item T) bool { return id(item) == wanted })
	}
	if p.Before != "" {
		list = list[:max(at(p.Before), 0)]
	}
	if p.After != "" {
		i := at(p.After)
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
