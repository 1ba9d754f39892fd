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
// of T, `id` and the order's among them. Before and After name rows by id: what comes before or after them in the order asked for;
// an id that the query does not yield gives an empty page.
func List[T any](ctx context.Context, d DB, p Page, query, order string, args pgx.StrictNamedArgs) ([]T, error) {
	backwards := p.Before != "" && p.After == ""
	ascending := p.Ascending != backwards
	direction, beyond := "DESC", "<"
	if ascending {
		direction, beyond = "ASC", ">"
	}
	columns := strings.Split(order, ", ")
	sql := "WITH listed AS NOT MATERIALIZED (" + query + ") SELECT * FROM listed"
	args = maps.Clone(args)
	if cursor := cmp.Or(p.After, p.Before); cursor != "" {
		sql += " WHERE (" + order + ") " + beyond + " (SELECT " + order + " FROM listed WHERE id = @cursor)"
		args["cursor"] = cursor
	}
	if p.After != "" && p.Before != "" {
		opposite := map[string]string{"<": ">", ">": "<"}[beyond]
		sql += " AND (" + order + ") " + opposite + " (SELECT " + order + " FROM listed WHERE id = @stop)"
		args["stop"] = p.Before
	}
	sql += " ORDER BY " + strings.Join(columns, " "+direction+", ") + " " + direction
	if p.Limit > 0 {
		sql += " LIMIT @page_limit"
		args["page_limit"] = p.Limit
	}
	rows, err := All[T](ctx, d, sql, args)
	if backwards {
		slices.Reverse(rows)
	}
	return rows, err
}
