package db

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// NoItems is the Limit of a page without items.
const NoItems = -1

// Page selects the part of a list between the items with the ids After and Before, in the order of the request. A Limit
// of 0 does not limit, and one of NoItems selects nothing.
type Page struct {
	Before, After string
	Until         string // id of an item that the page ends before, wherever the page begins; not with Before
	Limit         int
	Ascending     bool
	Order         string // columns by which List sorts; the last one is unique; empty means ByCreation
}

// List returns one page of a query's rows. The query yields the columns of T, `id`, and the columns of the order. An id
// in Before or After that the query does not yield gives an empty page. If the order is ByCreation and args has @org,
// the id may also be of a row that was deleted within the last day.
func List[T any](ctx context.Context, d DB, p Page, query string, args pgx.StrictNamedArgs) ([]T, error) {
	args, order := maps.Clone(args), cmp.Or(p.Order, ByCreation)
	place := "SELECT " + order + " FROM listed WHERE id = @place"
	if _, ok := args["org"]; ok && order == ByCreation {
		place = Place(place)
	}
	c := p.Clauses(order, place, args)
	query = "WITH listed AS NOT MATERIALIZED (" + query + ") SELECT * FROM listed WHERE " + c.Where + c.Order
	rows, err := All[T](ctx, d, query, args)
	if c.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// ByCreation orders a list from the oldest to the newest.
const ByCreation = "created_at, key"

// Place returns a query for the created_at and key of the item @place. existing is that query for existing items; Place
// adds the deleted items of @org.
func Place(existing string) string {
	return "SELECT created_at, key FROM (" + existing + " UNION ALL " +
		"SELECT created_at, key FROM deleted_places WHERE org = @org AND id = @place) p LIMIT 1"
}

// Clauses are the SQL clauses of a page.
type Clauses struct {
	Where    string // condition on the columns of the order
	Order    string // ORDER BY and LIMIT
	Reversed bool   // the rows come in reverse, because a page that ends before an item is read backwards
}

// Clauses returns the SQL of the page, and adds its arguments to args. The query place yields the order's columns for
// the item with the id @place.
func (p Page) Clauses(order, place string, args pgx.StrictNamedArgs) Clauses {
	reversed := p.Before != "" && p.After == ""
	direction, beyond, opposite := "DESC", "<", ">"
	if p.Ascending != reversed {
		direction, beyond, opposite = "ASC", ">", "<"
	}
	c := Clauses{Where: "true", Reversed: reversed}
	bound := func(operator, name, id string) {
		c.Where += " AND (" + order + ") " + operator + " (" + strings.ReplaceAll(place, "@place", "@"+name) + ")"
		args[name] = id
	}
	if cursor := cmp.Or(p.After, p.Before); cursor != "" {
		bound(beyond, "page_cursor", cursor)
	}
	stop := p.Until
	if p.After != "" {
		stop = cmp.Or(stop, p.Before)
	}
	if stop != "" {
		bound(opposite, "page_stop", stop)
	}
	c.Order = " ORDER BY " + strings.ReplaceAll(order, ", ", " "+direction+", ") + " " + direction
	switch {
	case p.Limit == NoItems:
		c.Order += " LIMIT 0"
	case p.Limit > 0:
		c.Order += " LIMIT @page_limit"
		args["page_limit"] = p.Limit
	}
	return c
}

// UUID returns the UUID in an id that begins with prefix. For a malformed id it returns uuid.Nil, which no row has.
func UUID(prefix, id string) uuid.UUID {
	parsed, err := uuid.Parse(strings.TrimPrefix(id, prefix))
	if err != nil {
		return uuid.Nil
	}
	return parsed
}

// ByUUID returns the page with UUIDs in place of the ids in Before and After.
func (p Page) ByUUID(prefix string) Page {
	for _, id := range []*string{&p.Before, &p.After, &p.Until} {
		if *id != "" {
			*id = UUID(prefix, *id).String()
		}
	}
	return p
}

// ForgetDeleted deletes the list positions of items that were deleted more than a day ago, at most 10,000 at a time. It
// returns their number.
func ForgetDeleted(ctx context.Context, d DB) (int, error) {
	rows := 0
	err := EachOrg(ctx, d, func(org Org) error {
		tag, err := d.Exec(ctx, `
			DELETE FROM deleted_places WHERE org = $1 AND id IN (
				SELECT id FROM deleted_places
				WHERE org = $1 AND deleted_at < now() - interval '1 day' ORDER BY deleted_at, id LIMIT 10000)`, org)
		rows += int(tag.RowsAffected())
		return err
	}, `SELECT DISTINCT org FROM deleted_places WHERE deleted_at < now() - interval '1 day'`)
	return rows, err
}
