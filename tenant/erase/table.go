package erase

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// column is a column of a table that may hold a text.
type column struct {
	Table string `db:"table_name"`
	Name  string `db:"name"`
	Type  string `db:"type"`
	IsKey bool   `db:"is_key"` // part of the primary key, so that a row keeps its value
}

// isJSON reports whether the column is read as JSON. Lists are.
func (c column) isJSON() bool { return c.Type == "json" || c.Type == "jsonb" || c.isList() }

func (c column) isList() bool { return strings.HasSuffix(c.Type, "[]") }

func (c column) ident() string { return pgx.Identifier{c.Name}.Sanitize() }

// names tells who chose the field names in the column's JSON.
func (c column) names() names {
	switch {
	case c.Name == "metadata" && !strings.HasPrefix(c.Table, "river_"):
		return callersNames
	case c.Name == "args_json_schema":
		return schemaNames
	}
	return ownNames
}

// read returns an SQL expression for the column as a text.
func (c column) read() string {
	if c.isList() {
		return "array_to_json(t." + c.ident() + ")::text"
	}
	return "t." + c.ident() + "::text"
}

// write returns an SQL expression that turns a text argument into a value of the column.
func (c column) write(argument int) string {
	switch c.Type {
	case "text[]", "character varying[]":
		return fmt.Sprintf("ARRAY(SELECT jsonb_array_elements_text($%d::jsonb))", argument)
	case "jsonb[]":
		return fmt.Sprintf("ARRAY(SELECT jsonb_array_elements($%d::jsonb))", argument)
	}
	return fmt.Sprintf("$%d::%s", argument, c.Type)
}

// table is a table with those columns that may hold a text.
type table struct {
	name    string
	keys    []column // of the primary key, except org
	columns []column
	where   string // condition for the rows t of organization $1
}

// keeps reports whether an erasure must leave a column because it identifies the row.
func (t table) keeps(column int) bool {
	return t.columns[column].IsKey && !slices.Contains(renamed, t.name)
}

// byHand lists the tables and columns that other code of this package erases; nil stands for all columns. See sweep.
var byHand = map[string][]string{"erasures": nil, "erased_messages": nil, "blobs": nil, "clips": nil,
	"prompt_parts": nil, "file_originals": nil, "file_segments": nil, "chunks": nil, "passage_values": nil,
	"messages": {"content", "name", "sender_id", "group_id", "otid", "step_id", "run_id", "model", "refused"},
	"passages": {"text", "tags", "metadata"}}

// isByHand reports whether other code erases the column.
func (c column) isByHand() bool {
	columns, ok := byHand[c.Table]
	return ok && (columns == nil || slices.Contains(columns, c.Name))
}

// ofOrganizations is the condition for tables c that have rows of organizations.
const ofOrganizations = `(c.relname = 'river_job' OR EXISTS (
	SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attname = 'org' AND NOT o.attisdropped))`

// tables reads the organizations' tables from Postgres' catalog, so that columns of later versions are searched, too.
func (s *Store) tables(ctx context.Context) ([]table, error) {
	all, err := db.All[column](ctx, s.DB, `
		SELECT c.relname::text AS table_name, a.attname::text AS name, format_type(a.atttypid, NULL) AS type,
		       coalesce(a.attnum = ANY (k.conkey), false) AS is_key
		FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND `+ofOrganizations+`
		ORDER BY c.relname, a.attnum`)
	var tables []table
	for _, c := range all {
		if n := len(tables); n == 0 || tables[n-1].name != c.Table {
			tables = append(tables, table{name: c.Table, where: "t.org = $1"})
			if c.Table == "river_job" {
				tables[n].where = "t.args @> jsonb_build_object('org', $1::integer)"
			}
		}
		t := &tables[len(tables)-1]
		if c.IsKey && c.Name != "org" {
			t.keys = append(t.keys, c)
		}
		texts := []string{"text", "character varying", "json", "jsonb", "text[]", "character varying[]", "jsonb[]"}
		if slices.Contains(texts, c.Type) && !c.isOwn() && !c.isByHand() {
			t.columns = append(t.columns, c)
		}
	}
	return slices.DeleteFunc(tables, func(t table) bool { return len(t.columns) == 0 }), err
}

// hit is a row with an occurrence.
type hit struct {
	keys   []string
	values []*string // one per column
}

// maxHits is how many rows of a table are read before they are changed.
const maxHits = 500

// hits reads up to maxHits rows with an occurrence, in the order of their keys. after holds the keys of the row behind
// which to begin; nil begins at the first row. A table without keys has one row per organization.
func (t table) hits(ctx context.Context, d db.DB, org db.Org, matches func(column, string) bool, after []string) ([]hit,
	error) {
	args, where := []any{org}, t.where
	keys, values, order, last := []string{}, []string{}, []string{}, []string{}
	for i, k := range t.keys {
		keys, order = append(keys, "t."+k.ident()+"::text"), append(order, "t."+k.ident())
		if after != nil {
			args = append(args, after[i])
			last = append(last, fmt.Sprintf("$%d::text::%s", len(args), k.Type))
		}
	}
	if len(last) > 0 {
		where += fmt.Sprintf(" AND (%s) > (%s)", strings.Join(order, ", "), strings.Join(last, ", "))
	}
	if len(order) > 0 {
		where += " ORDER BY " + strings.Join(order, ", ")
	}
	for _, c := range t.columns {
		values = append(values, c.read())
	}
	rows, err := d.Query(ctx, fmt.Sprintf(`SELECT ARRAY[%s]::text[], ARRAY[%s]::text[] FROM %s t WHERE %s`,
		strings.Join(keys, ", "), strings.Join(values, ", "), pgx.Identifier{t.name}.Sanitize(), where), args...)
	if err != nil {
		return nil, db.Error(err)
	}
	defer rows.Close()
	var found []hit
	for rows.Next() && len(found) < maxHits {
		var h hit
		if err := rows.Scan(&h.keys, &h.values); err != nil {
			return nil, err
		}
		isHit := false
		for i, v := range h.values {
			isHit = isHit || v != nil && matches(t.columns[i], *v)
		}
		if isHit {
			found = append(found, h)
		}
	}
	rows.Close()
	return found, db.Error(rows.Err())
}

// erasedValue is the new value of a column, given by the column's index.
type erasedValue struct {
	column int
	text   string
}

// row names the row of a hit.
func (t table) row(org db.Org, h hit) db.Rows {
	args, all := []any{org}, []string{"true"}
	for i, k := range t.keys {
		args = append(args, h.keys[i])
		all = append(all, fmt.Sprintf("r.%s = $%d::text::%s", k.ident(), len(args), k.Type))
	}
	return db.Rows{Table: t.name, Where: strings.Join(all, " AND "), Args: args}
}

// update stores a new value in a row, unless the row's value has changed meanwhile.
func (t table) update(ctx context.Context, d db.DB, org db.Org, h hit, v erasedValue) error {
	c := t.columns[v.column]
	args := []any{org, v.text, *h.values[v.column]}
	where := []string{t.where, c.read() + " = $3"}
	for i, k := range t.keys {
		args = append(args, h.keys[i])
		where = append(where, fmt.Sprintf("t.%s = $%d::text::%s", k.ident(), len(args), k.Type))
	}
	_, err := d.Exec(ctx, fmt.Sprintf(`UPDATE %s t SET %s = %s WHERE %s`, pgx.Identifier{t.name}.Sanitize(), c.ident(),
		c.write(2), strings.Join(where, " AND ")), args...)
	return db.Error(err)
}
