package erase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ErasedRow is a row with an occurrence, outside messages, files, passages and stored prompts.
type ErasedRow struct {
	Where       string `json:"where" doc:"Table and column."`
	Of          string `json:"of" doc:"The row, such as which consumer of which agent; empty for a job."`
	Occurrences int    `json:"occurrences" doc:"How often it was there."`
	Left        bool   `json:"left" doc:"It could not be changed."`
}

// maxPlaces is how many places a report lists.
const maxPlaces = 200

// place adds a row with occurrences to the report. Row numbers count the rows of all organizations, so the report does
// not show them.
func (w *sweep) place(ctx context.Context, t table, h hit, p ErasedRow) error {
	if len(w.report.Places) >= maxPlaces {
		return nil
	}
	var parts []string
	switch {
	// By its keys: the row's name has been changed by now.
	case t.name == consumers && len(h.keys) == 2:
		parts = []string{"consumer " + h.keys[1] + " of agent " + h.keys[0]}
	// By its key, for the same reason.
	case t.name == modelFactors && len(h.keys) == 1:
		parts = []string{"model " + h.keys[0]}
	case t.name != "river_job":
		var err error
		if parts, err = w.rowNames(ctx, t, h); err != nil {
			return err
		}
	}
	for i, part := range parts {
		parts[i], _ = w.matcherOf(t.name).erase(part)
	}
	if p.Of = strings.Join(parts, " "); !slices.Contains(w.report.Places, p) {
		w.report.Places = append(w.report.Places, p)
	}
	return nil
}

// rowNames returns a row's name for callers: its id; for a memory file, the id of its tree and its path; otherwise the
// ids of the rows that it belongs to, and its own numbers within them.
func (w *sweep) rowNames(ctx context.Context, t table, h hit) ([]string, error) {
	if w.links == nil {
		var err error
		if w.links, err = w.rowLinks(ctx); err != nil {
			return nil, err
		}
	}
	names := w.links.names(t)
	if len(names) == 0 {
		return nil, nil
	}
	args, where := []any{w.org}, []string{t.where}
	for i, k := range t.keys {
		args = append(args, h.keys[i])
		where = append(where, fmt.Sprintf("t.%s = $%d::text::%s", k.ident(), len(args), k.Type))
	}
	parts, err := db.One[[]string](ctx, w.DB, fmt.Sprintf(
		`SELECT array_remove(ARRAY[%s]::text[], NULL) AS names FROM %s t WHERE %s`,
		strings.Join(names, ", "), pgx.Identifier{t.name}.Sanitize(), strings.Join(where, " AND ")), args...)
	if errors.Is(err, db.ErrNotFound) { // it was deleted meanwhile
		return nil, nil
	}
	return parts, err
}

// link is a column that refers to a row of another table.
type link struct {
	Table    string `db:"table_name"`
	Column   string `db:"column_name"`
	To       string `db:"to_table"`
	ToColumn string `db:"to_column"`
}

// rowLinks holds the links of all tables, and the names of the organizations' tables that have ids.
type rowLinks struct {
	links []link
	ids   []string
}

// rowLinks reads the links of all tables. Links to keys come first.
func (w *sweep) rowLinks(ctx context.Context) (l *rowLinks, err error) {
	l = &rowLinks{}
	if l.links, err = db.All[link](ctx, w.DB, `
		SELECT c.relname::text AS table_name, a.attname::text AS column_name, o.relname::text AS to_table,
		       b.attname::text AS to_column
		FROM pg_constraint k
		CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (own, other)
		JOIN pg_class c ON c.oid = k.conrelid
		JOIN pg_class o ON o.oid = k.confrelid
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = pair.own
		JOIN pg_attribute b ON b.attrelid = o.oid AND b.attnum = pair.other
		WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace AND a.attname <> 'org'
		ORDER BY c.relname, a.attname, b.attname NOT IN ('key', 'id'), k.conname`); err != nil {
		return nil, err
	}
	l.ids, err = db.All[string](ctx, w.DB, `
		SELECT c.relname::text FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'id' AND NOT a.attisdropped
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND `+ofOrganizations+`
		ORDER BY c.relname`)
	return l, err
}

// names returns SQL expressions that together name a row t of a table.
func (l *rowLinks) names(t table) (list []string) {
	if name := l.idOf(t.name, "t"); name != "" {
		return []string{name}
	}
	for _, k := range t.keys {
		if k.Name == "key" { // the rows that it belongs to name it
			for _, link := range l.links {
				if link.Table == t.name && link.ToColumn == "key" {
					list = append(list, l.of(t.name, link.Column))
				}
			}
			continue
		}
		if slices.ContainsFunc(l.links, func(link link) bool { return link.Table == t.name && link.Column == k.Name }) {
			list = append(list, l.of(t.name, k.Name))
			continue
		}
		list = append(list, fmt.Sprintf("'%s ' || t.%s", k.Name, k.ident()))
	}
	return slices.DeleteFunc(list, func(name string) bool { return name == "" })
}

// of returns an SQL expression for the name of the row to which a column of row t refers, also through other tables. It
// is empty if that row has no name.
func (l *rowLinks) of(table, column string) string {
	own := "t." + pgx.Identifier{column}.Sanitize()
	for range len(l.links) {
		i := slices.IndexFunc(l.links, func(link link) bool { return link.Table == table && link.Column == column })
		if i < 0 {
			return ""
		}
		if table, column = l.links[i].To, l.links[i].ToColumn; column == "id" && slices.Contains(l.ids, table) {
			return own
		}
		if name := l.idOf(table, "r"); name != "" {
			return fmt.Sprintf(`(SELECT %s FROM %s r WHERE r.org = $1 AND r.%s = %s LIMIT 1)`, name,
				pgx.Identifier{table}.Sanitize(), pgx.Identifier{column}.Sanitize(), own)
		}
	}
	return ""
}

// idOf returns an SQL expression for a row's id as callers know it. It is empty if the table has no ids.
func (l *rowLinks) idOf(table, row string) string {
	switch {
	case !slices.Contains(l.ids, table):
		return ""
	case table == "memory_files":
		return `(SELECT tree.id FROM memory_trees tree WHERE tree.org = $1 AND tree.key = ` + row + `.tree_key) || ' ' || ` +
			row + `.path`
	case table == "messages", table == "passages": // the prefix of these ids is not stored
		return "'" + strings.TrimSuffix(table, "s") + "-' || " + row + ".id"
	}
	return row + ".id"
}

// Tables with rows that are named by callers' texts: the names of event readers, and of models.
const (
	consumers    = "event_consumers"
	modelFactors = "model_factors"
)

// renamed are the tables in which an erasure may change keys.
var renamed = []string{consumers, modelFactors}

// matcherOf returns the matcher to use for a table.
func (w *sweep) matcherOf(table string) *matcher {
	if w.quotes != nil && slices.Contains(madeOfMessages, table) {
		return w.quotes
	}
	return w.m
}
