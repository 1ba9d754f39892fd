package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// AnalyzeGrown analyzes a table with more than grownTimes as many pages as Postgres' statistics say, plus grownPages.
const (
	grownTimes = 2
	grownPages = 4
)

// AnalyzeGrown analyzes the tables that have doubled, or grown from almost nothing, since Postgres made their
// statistics, and returns their names. After a bulk load, autovacuum does so only minutes later, or never if it is off.
// Until then, Postgres plans statements for the small tables of before: a join may compare each row with each other
// row.
func AnalyzeGrown(ctx context.Context, d DB) (tables []string, err error) {
	tables, err = All[string](ctx, d, `
		SELECT relname FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		  AND pg_relation_size(oid) / current_setting('block_size')::bigint > greatest(relpages, 0) * $1::float8 + $2::float8
		ORDER BY relname`, grownTimes, grownPages)
	for _, table := range tables {
		if _, err := d.Exec(ctx, `SELECT analyze_table(quote_ident($1)::regclass)`, table); err != nil {
			return tables, Error(err)
		}
	}
	return tables, err
}

// reindexTimeout is the time limit for rebuilding one index.
const reindexTimeout = time.Minute

// Reindex rebuilds indexes as their owner, without locking their tables. It first drops what an interrupted rebuild
// left. It does nothing while another server builds an index.
func Reindex(ctx context.Context, owner *pgxpool.Pool, indexes ...string) error {
	acquired, err := owner.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := acquired.Hijack() // closing the connection frees its lock
	defer conn.Close(context.WithoutCancel(ctx))
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(LockIndex)).Scan(&mine); err != nil || !mine {
		return err
	}
	for _, index := range indexes {
		if err := reindex(ctx, conn, index); err != nil {
			return fmt.Errorf("rebuild index %s: %w", index, err)
		}
	}
	return nil
}

func reindex(ctx context.Context, conn *pgx.Conn, index string) error {
	ctx, cancel := context.WithTimeout(ctx, reindexTimeout)
	defer cancel()
	for _, sql := range []string{`DROP INDEX CONCURRENTLY IF EXISTS ` + pgx.Identifier{index + "_ccnew"}.Sanitize(),
		`REINDEX INDEX CONCURRENTLY ` + pgx.Identifier{index}.Sanitize()} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
