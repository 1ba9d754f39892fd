package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// stored is a table with rows that count as what an organization stores.
type stored struct {
	kind  string // in stored_usage
	bytes string // SQL for the bytes of a row
	quota string // the quota that refuses new rows; empty if none does
	fresh string // SQL that is true for a row that an INSERT added, and false for one that it found; empty: all were added
}

// countedTables are the tables whose rows are counted. The statements that add, change and delete rows count them,
// because Citus has no triggers: Insert and Delete do, and the functions in this file give the SQL to those that are
// batched. Each change is a row of its own in stored_usage, so that no two transactions wait for each other to count.
var countedTables = map[string]stored{
	"agents":               {kind: "agents", bytes: "0::bigint", quota: QuotaAgents},
	"files":                {kind: "documents", bytes: "size_bytes", quota: QuotaStoredBytes},
	"messages":             {kind: "messages", bytes: "octet_length(content::text)", quota: QuotaStoredBytes},
	"passages":             {kind: "passages", bytes: "octet_length(text)", quota: QuotaStoredBytes},
	"blobs":                {kind: "long_results", bytes: "size_bytes", fresh: "xmax = 0"},
	"block_versions":       {kind: "block_versions", bytes: "octet_length(value)", quota: QuotaStoredBytes},
	"memory_file_versions": {kind: "memory_file_versions", bytes: "octet_length(content)", quota: QuotaStoredBytes},
}

const insertUsage = `INSERT INTO stored_usage (org, kind, items, bytes) `

// Counting returns a WITH clause for an INSERT into a counted table. It counts the rows that the INSERT adds. The query
// that follows may read the CTE added, with the columns org, bytes and those in returned: "" or a comma and a list.
func Counting(table, insert, returned string) string {
	c, fresh := countedTables[table], ""
	if c.fresh != "" {
		returned += `, ` + c.fresh + ` AS fresh`
		fresh = ` WHERE fresh`
	}
	return `WITH added AS (` + insert + ` RETURNING org, coalesce(` + c.bytes + `, 0) AS bytes` + returned +
		`), counted AS (` + insertUsage + `
			SELECT org, '` + c.kind + `', count(*), sum(bytes) FROM added` + fresh + ` GROUP BY org) `
}

// Counted returns a CTE that counts the rows that an INSERT into a table added. rows names the CTE of that INSERT,
// which returns org and the column that the bytes are of.
func Counted(table, rows string) string {
	c := countedTables[table]
	return `counted AS (` + insertUsage + `
		SELECT org, '` + c.kind + `', count(*), sum(` + c.bytes + `) FROM ` + rows + ` GROUP BY org)`
}

// CountBytes returns a statement that adds the bytes of the rows of a counted table for which a condition holds to what
// their organization stores, with a sign: 1, or -1 to subtract them. In the condition, r is the row.
func CountBytes(table, condition string, sign int) string {
	c := countedTables[table]
	return fmt.Sprintf(insertUsage+`
		SELECT r.org, '%s', 0, %d * coalesce(sum(%s), 0) FROM %s r WHERE %s GROUP BY r.org`,
		c.kind, sign, c.bytes, table, condition)
}

// Insert runs an INSERT into a counted table, and counts the rows, which are of one organization. *QuotaError if it
// then has more than its quota; the caller's transaction must end with it. The organization is the argument $1 or @org.
func Insert(ctx context.Context, d DB, table, insert string, args ...any) error {
	type added struct {
		Rows  int64 `db:"rows"`
		Bytes int64 `db:"bytes"`
		Org   *Org  `db:"org"` // NULL if it has no quota
	}
	quota := countedTables[table].quota
	org := "$1"
	if strings.Contains(insert, "@org") {
		org = "@org"
	}
	a, err := One[added](ctx, d, Counting(table, insert, "")+`
		SELECT count(*) AS rows, coalesce(sum(a.bytes), 0)::bigint AS bytes,
		       (SELECT q.org FROM quotas q WHERE q.org = `+org+` AND q.`+quota+` IS NOT NULL) AS org
		FROM added a`, args...)
	if err != nil || a.Org == nil {
		return err
	}
	if quota == QuotaAgents {
		return CheckQuota(ctx, d, *a.Org, quota, a.Rows)
	}
	return CheckQuota(ctx, d, *a.Org, quota, a.Bytes)
}

// InsertBeyond is Insert that no quota refuses.
func InsertBeyond(ctx context.Context, d DB, table, insert string, args ...any) error {
	_, err := d.Exec(ctx, Counting(table, insert, "")+`SELECT count(*) FROM added`, args...)
	return Error(err)
}

// Rows are the rows of a table for which a condition holds. In the condition, r is the row; the first argument is the
// organization, which the condition need not name.
type Rows struct {
	Table, Where string
	Args         []any
}

// Resize runs a function that changes the sizes of rows, and counts the difference. It must be called in a transaction
// that has locked the rows. If the table is not counted, Resize only runs the function.
func Resize(ctx context.Context, tx pgx.Tx, of Rows, change func() error) error {
	if countedTables[of.Table].kind == "" {
		return change()
	}
	if _, err := tx.Exec(ctx, CountBytes(of.Table, `r.org = $1 AND `+of.Where, -1), of.Args...); err != nil {
		return Error(err)
	}
	if err := change(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, CountBytes(of.Table, `r.org = $1 AND `+of.Where, 1), of.Args...)
	return Error(err)
}

// usedOf is SQL for the end of a sum over rows u of stored_usage, of what they use of a quota.
var usedOf = map[string]string{
	QuotaAgents:      `u.items) FILTER (WHERE u.kind = 'agents')`,
	QuotaStoredBytes: `u.bytes)`,
}

// CheckQuota returns *QuotaError if an organization has more than its quota of agents or stored bytes. more is what the
// transaction has added; if it is 0 or less, nothing is refused.
func CheckQuota(ctx context.Context, d DB, org Org, quota string, more int64) error {
	if more <= 0 {
		return nil
	}
	type use struct {
		Used  int64 `db:"used"`
		Limit int64 `db:"quota"`
	}
	u, err := One[use](ctx, d, `
		SELECT q.`+quota+` AS quota, (
			SELECT coalesce(sum(`+usedOf[quota]+`, 0) FROM stored_usage u WHERE u.org = $1)::bigint AS used
		FROM quotas q WHERE q.org = $1 AND q.`+quota+` IS NOT NULL`, org)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil && u.Used > u.Limit {
		err = &QuotaError{Quota: quota, Used: u.Used - more, Requested: more, Limit: u.Limit}
	}
	return err
}

// CheckQuotaLast is CheckQuota for the end of a transaction. It waits for other transactions at their end, so that the
// first one to commit is counted by the next, and holds exactly.
func CheckQuotaLast(ctx context.Context, d DB, org Org, quota string, more int64) error {
	limits, err := All[int64](ctx, d, `
		SELECT `+quota+` FROM quotas WHERE org = $1 AND `+quota+` IS NOT NULL FOR NO KEY UPDATE`, org)
	if err != nil || len(limits) == 0 {
		return err
	}
	return CheckQuota(ctx, d, org, quota, more)
}
