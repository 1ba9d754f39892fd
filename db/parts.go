package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db/migrations"
)

// Parts are the names of the parts of Loci's schema: columns, constraints, triggers, unique indexes and functions.
type Parts []string

// PartsOf returns the parts of the schema of a database.
func PartsOf(ctx context.Context, d DB) (Parts, error) {
	return All[string](ctx, d, selectParts, migrations.Tables(), migrations.Functions())
}

// selectParts lists the parts of the tables $1, which are Loci's, of the queue's tables, and of the functions $2.
const selectParts = `
	WITH tables AS (
		SELECT oid, relname AS name FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
		  AND (relname = ANY ($1) OR relname = 'schema_migrations' OR relname LIKE 'river\_%')
	)
	SELECT format('column %s of %s', attname, name) FROM tables t JOIN pg_attribute ON attrelid = t.oid
	WHERE attnum > 0 AND NOT attisdropped
	UNION ALL
	SELECT format('constraint %s of %s', conname, name) FROM tables t JOIN pg_constraint ON conrelid = t.oid
	UNION ALL
	SELECT format('trigger %s of %s', tgname, name) FROM tables t JOIN pg_trigger ON tgrelid = t.oid
	WHERE NOT tgisinternal
	UNION ALL
	SELECT format('index %s of %s', indexrelid::regclass, name) FROM tables t JOIN pg_index ON indrelid = t.oid
	WHERE indisunique AND indisvalid
	UNION ALL
	SELECT format('function %s', proname) FROM pg_proc
	WHERE pronamespace = current_schema()::regnamespace AND proname = ANY ($2)`

// check returns an error if the database lacks some of the parts, or has another schema version than this program.
// LacksSchema recognizes the error.
func (p Parts) check(ctx context.Context, conn *pgx.Conn) error {
	existing, err := PartsOf(ctx, conn)
	if err != nil {
		return err
	}
	exists := make(map[string]bool, len(existing))
	for _, part := range existing {
		exists[part] = true
	}
	for _, part := range p {
		if !exists[part] {
			return fmt.Errorf("%w: %s", errLacking, part)
		}
	}
	return CheckSchema(ctx, conn)
}
