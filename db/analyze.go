package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// AnalyzeGrown analyzes the tables that are a fifth larger than Postgres' statistics know, by at least 1 MiB, and
// returns their names. After a bulk load, autovacuum does so only minutes later, or never where it is off, and
// statements are planned for the tables as they were before.
func AnalyzeGrown(ctx context.Context, d DB) (tables []string, err error) {
	tables, err = All[string](ctx, d, `
		SELECT relname FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		  AND pg_relation_size(oid) / current_setting('block_size')::bigint
		      > greatest(relpages, 0) * 1.2 + 1048576 / current_setting('block_size')::bigint
		ORDER BY relname`)
	for _, table := range tables {
		if _, err := d.Exec(ctx, `ANALYZE `+pgx.Identifier{table}.Sanitize()); err != nil {
			return tables, Error(err)
		}
	}
	return tables, err
}
