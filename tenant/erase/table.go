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
	IsKey bool   `db:"is_key"` // of the primary key: a row keeps it
}

// isJSON reports whether the column is read as JSON: lists too.
func (c column) isJSON() bool { return c.Type == "json" || c.Type == "jsonb" || c.isList() }

func (c column) isList() bool { return strings.HasSuffix(c.Type, "[]") }

func (c column) ident() string { return pgx.Identifier{c.Name}.Sanitize() }

// names says whose words the names of fields in the column are.
func (c column) names() names {
	switch {
	case c.Name == "metadata" && !strings.HasPrefix(c.Table, "river_"):
		return callersNames
	case c.Name == "args_json_schema":
		return schemaNames
	}
	return ownNames
}

// read returns the expression of the column as a text.
func (c column) read() string {
	if c.isList() {
		return "array_to_json(t." + c.ident() + ")::text"
	}
	return "t." + c.ident() + "::text"
}

// write returns the expression of a value of the column that is read from a text.
func (c column) write(argument int) string {
	switch c.Type {
	case "text[]", "character varying[]":
		return fmt.Sprintf("ARRAY(SELECT jsonb_array_elements_text($%d::jsonb))", argument)
	case "jsonb[]":
		return fmt.Sprintf("ARRAY(SELECT jsonb_array_elements($%d::jsonb))", argument)
	}
	return fmt.Sprintf("$%d::%s", argument, c.Type)
}

// table is a table with its columns that may hold a text.
type table struct {
	name    string
	keys    []column // of the primary key but for org
	columns []column
	where   string // which rows t are the organization's $1
}

// keeps reports whether an erasure leaves a column because the row is known by it.
func (t table) keeps(column int) bool {
	return t.columns[column].IsKey && !slices.Contains(renamed, t.name)
}

// byHand are the tables in which an erasure changes texts in other ways, and those columns: none stands for all. See
// sweep.
var byHand = map[string][]string{"erasures": nil, "erased_messages": nil, "blobs": nil, "clips": nil,
	"prompt_parts": nil, "file_originals": nil, "file_segments": nil, "chunks": nil,
	"messages": {"content", "name", "sender_id", "group_id", "otid", "step_id", "run_id", "model", "refused"},
	"passages": {"text", "tags", "metadata"}}

// isByHand reports whether an erasure changes the column in another way.
func (c column) isByHand() bool {
	columns, ok := byHand[c.Table]
	return ok && (columns == nil || slices.Contains(columns, c.Name))
}

// ofOrganizations is the condition for tables c with rows of organizations.
const ofOrganizations = `(c.relname = 'river_job' OR EXISTS (
	SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attname = 'org' AND NOT o.attisdropped))`

// tables returns the tables of organizations by the catalog, so that a column which a later version adds is searched
// too.
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
	values []*string // of the columns
}

// maxHits is how many rows of a table are read before they are changed.
const maxHits = 500

// hits reads rows with an occurrence in the order of their keys, at most maxHits of those after a row; nil is before
// the first one. A table without keys has one row of an organization.
func (t table) hits(ctx context.Context, d db.DB, org db.Org, in func(column, string) bool, after []string) ([]hit,
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
		has := false
		for i, v := range h.values {
			has = has || v != nil && in(t.columns[i], *v)
		}
		if has {
			found = append(found, h)
		}
	}
	rows.Close()
	return found, db.Error(rows.Err())
}

// erasedValue is the new value of a column, named by its index.
type erasedValue struct {
	column int
	text   string
}

// update stores a new value of a row, unless another one has changed it meanwhile.
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
