package db

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Page asks for a stretch of a list, as the API's lists do: before and after are ids of items, in the order asked for; a Limit of 0
// means none.
type Page struct {
	Before, After string
	Limit         int
	Ascending     bool
}

// List returns the page of a query's rows, in the order of the given columns, whose last must be unique. The query yields the columns
// of T, `id` and the order's among them. Before and After name rows by id: what comes before or after them in the order asked for.
// Where the order is that of creation and the query has an @org, a row that was deleted within the last day still stands where it stood;
// any other id that the query does not yield gives an empty page.
func List[T any](ctx context.Context, d DB, p Page, query, order string, args pgx.StrictNamedArgs) ([]T, error) {
	args = maps.Clone(args)
	place := "SELECT " + order + " FROM listed WHERE id = @place"
	if _, ok := args["org"]; ok && order == ByCreation {
		place = Place(place)
	}
	s := p.Stretch(order, place, args)
	rows, err := All[T](ctx, d, "WITH listed AS NOT MATERIALIZED ("+query+") SELECT * FROM listed WHERE "+s.Where+s.Order, args)
	if s.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// ByCreation is the order of a list from the oldest to the newest.
const ByCreation = "created_at, key"

// Place returns a query of the created_at and key of the item @place, given one that does not know the deleted items of @org.
func Place(living string) string {
	return "SELECT created_at, key FROM (" + living + " UNION ALL SELECT created_at, key FROM deleted_places WHERE org = @org AND id = @place) p LIMIT 1"
}

// Stretch is a page in SQL.
type Stretch struct {
	Where    string // a condition on the columns of the order
	Order    string // by them, with the limit
	Reversed bool   // the rows come the other way round: a page before something is read backwards from there
}

// Stretch returns the page as SQL that takes args, to which it adds. The query place yields the columns of the order of the
// item whose id is @place.
func (p Page) Stretch(order, place string, args pgx.StrictNamedArgs) Stretch {
	reversed := p.Before != "" && p.After == ""
	direction, beyond, opposite := "DESC", "<", ">"
	if p.Ascending != reversed {
		direction, beyond, opposite = "ASC", ">", "<"
	}
	s := Stretch{Where: "true", Reversed: reversed}
	bound := func(operator, name, id string) {
		s.Where += " AND (" + order + ") " + operator + " (" + strings.ReplaceAll(place, "@place", "@"+name) + ")"
		args[name] = id
	}
	if cursor := cmp.Or(p.After, p.Before); cursor != "" {
		bound(beyond, "cursor", cursor)
	}
	if p.After != "" && p.Before != "" {
		bound(opposite, "stop", p.Before)
	}
	s.Order = " ORDER BY " + strings.ReplaceAll(order, ", ", " "+direction+", ") + " " + direction
	if p.Limit > 0 {
		s.Order += " LIMIT @page_limit"
		args["page_limit"] = p.Limit
	}
	return s
}

// ForgetDeleted forgets where things stood that were deleted more than a day ago, some thousands at once; it says how many.
func ForgetDeleted(ctx context.Context, d DB) (int, error) {
	tag, err := d.Exec(ctx, `
		DELETE FROM deleted_places WHERE id IN (
			SELECT id FROM deleted_places WHERE deleted_at < now() - interval '1 day' ORDER BY deleted_at, id LIMIT 10000)`)
	return int(tag.RowsAffected()), err
}
