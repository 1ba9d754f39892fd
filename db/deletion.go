package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// trace says what the deletion of a table's rows leaves to do.
type trace struct {
	place bool   // the rows' places in lists are kept for a day
	self  string // column of the table that refers to rows of the table; of a deleted row it becomes NULL
}

// keyed reports whether the keys of deleted rows are needed.
func (t trace) keyed() bool { return t.place || t.self != "" }

// traces are the tables whose deleted rows leave something to do, besides being counted. No trigger does it,
// because Citus has none.
var traces = map[string]trace{
	"agents":        {place: true},
	"archives":      {place: true},
	"blocks":        {place: true, self: "template_key"},
	"conversations": {place: true, self: "forked_from"},
	"files":         {place: true, self: "replaces"},
	"identities":    {place: true},
	"memory_files":  {self: "superseded_by"},
	"memory_trees":  {place: true},
	"passages":      {self: "superseded_by"},
	"tools":         {place: true},
}

// Deleted is what Deleting returns.
type Deleted struct {
	Rows int     `db:"rows"`
	Keys []int64 `db:"keys"` // none if no other row of the table names one
}

// Deleting returns a statement that deletes the rows of a table for which a condition holds, and returns Deleted. In
// the condition, r is the row. CTEs that it reads, each followed by a comma, stand before. The caller makes other rows
// of the table no longer refer to the rows.
func Deleting(ctes, table, condition string) string {
	c, columns := countedTables[table], `r.org`
	if traces[table].place {
		columns += `, r.id, r.created_at`
	}
	if c.kind != "" {
		columns += `, coalesce(` + c.bytes + `, 0) AS bytes`
	}
	keys := `'{}'::bigint[]`
	if traces[table].keyed() {
		columns, keys = columns+`, r.key`, `coalesce(array_agg(key), '{}')`
	}
	sql := `WITH ` + ctes + `gone AS (DELETE FROM ` + table + ` AS r WHERE ` + condition + ` RETURNING ` + columns + `)`
	if c.kind != "" {
		sql += `, counted AS (` + insertUsage + `
			SELECT org, '` + c.kind + `', -count(*), -sum(bytes) FROM gone GROUP BY org)`
	}
	if traces[table].place {
		sql += `, placed AS (
			INSERT INTO deleted_places (id, org, created_at, key) SELECT id, org, created_at, key FROM gone
			ON CONFLICT (org, id) DO NOTHING)`
	}
	return sql + ` SELECT count(*) AS rows, ` + keys + ` AS keys FROM gone`
}

// Delete deletes the rows of a table for which a condition holds, and returns their number. In the condition, r is the
// row; the first argument is the organization, which the condition need not name. The places of the rows in lists are
// kept, and no other row of the table refers to them any more.
func Delete(ctx context.Context, d DB, table, condition string, args ...any) (rows int, err error) {
	self := traces[table].self
	if _, nested := d.(pgx.Tx); self != "" && !nested {
		err = Tx(ctx, d, func(tx pgx.Tx) error {
			rows, err = Delete(ctx, tx, table, condition, args...)
			return err
		})
		return rows, err
	}
	gone, err := One[Deleted](ctx, d, Deleting("", table, `r.org = $1 AND (`+condition+`)`), args...)
	if self != "" && gone.Rows > 0 {
		_, err = d.Exec(ctx, `UPDATE `+table+` SET `+self+` = NULL WHERE org = $1 AND `+self+` = ANY ($2)`, args[0],
			gone.Keys)
	}
	return gone.Rows, Error(err)
}

// DeleteOne is Delete for a condition that must hold for a row. ErrNotFound if it holds for none; ErrUnconfirmed if a
// row may have been deleted and d is not a transaction.
func DeleteOne(ctx context.Context, d DB, table, condition string, args ...any) error {
	rows, err := Delete(ctx, d, table, condition, args...)
	if _, nested := d.(pgx.Tx); err != nil && !nested {
		err = unconfirmed(err)
	}
	if err == nil && rows == 0 {
		err = ErrNotFound
	}
	return err
}
