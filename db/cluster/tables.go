package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/db"
)

// Place says where the rows of a table lie.
type Place string

// The places of a table.
const (
	Spread  Place = "spread"  // each organization's rows on one node
	Copied  Place = "copied"  // all rows on each node
	Central Place = "central" // all rows on the coordinator
)

// Table is a table of Loci's, or of River's.
type Table struct {
	Name  string `json:"name"`
	Place Place  `json:"place"` // where it belongs
	Why   string `json:"why,omitempty"`
	Bytes int64  `json:"bytes"`
	Done  bool   `json:"done"` // it lies there
}

// Tables returns the tables of a database in the order in which they are spread: those that others refer to come first.
func Tables(ctx context.Context, d db.DB) ([]Table, error) {
	type row struct {
		Name    string   `db:"name"`
		Parents []string `db:"parents"`
		Bytes   int64    `db:"bytes"`
		Method  string   `db:"method"` // h: by a column, n: everywhere, "": not at all
	}
	rows, err := db.All[row](ctx, d, `
		SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes,
		       ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint JOIN pg_class p ON p.oid = confrelid
		             WHERE contype = 'f' AND conrelid = c.oid AND confrelid <> c.oid) AS parents,
		       coalesce((SELECT partmethod::text FROM pg_dist_partition
		                 WHERE logicalrelid = c.oid AND (partmethod = 'h' OR repmodel = 't')), '') AS method
		FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> $1
		ORDER BY c.relname`, db.SpreadingTable)
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	var tables []Table
	placed := map[string]bool{}
	for len(rows) > 0 {
		i := slices.IndexFunc(rows, func(r row) bool {
			return !slices.ContainsFunc(r.Parents, func(parent string) bool { return !placed[parent] })
		})
		if i < 0 {
			return nil, errors.New("tables refer to each other in a circle, among them " + rows[0].Name)
		}
		r := rows[i]
		placed[r.Name], rows = true, slices.Delete(rows, i, i+1)
		t := Table{Name: r.Name, Bytes: r.Bytes}
		t.Place, t.Why = placeOf(r.Name)
		t.Done = t.Place == Central && r.Method == "" || t.Place == Copied && r.Method == "n" ||
			t.Place == Spread && r.Method == "h"
		tables = append(tables, t)
	}
	slices.SortStableFunc(tables, func(a, b Table) int { return rank(a.Place) - rank(b.Place) })
	return tables, nil
}

// rank orders the places: a table that is spread may refer to a copied one, and not the other way round.
func rank(p Place) int { return slices.Index([]Place{Copied, Spread, Central}, p) }

// placeOf returns where a table belongs, and why if it is not spread.
func placeOf(table string) (Place, string) {
	if why := db.ReferenceTables[table]; why != "" {
		return Copied, why
	}
	switch why := db.SharedTables[table]; {
	case why != "":
		return Central, why
	case db.Shared(table):
		return Central, "servers take jobs of all organizations from one queue, with FOR UPDATE SKIP LOCKED"
	}
	return Spread, ""
}
