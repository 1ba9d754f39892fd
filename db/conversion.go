package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db/migrations"
)

// convert brings a schema of a version before the baseline to the baseline, in one transaction. Afterwards it compares
// the catalogue with the one that the baseline makes. *SchemaError if the version is older than those that can be
// converted, or if a part is missing or differs.
func convert(ctx context.Context, conn *pgx.Conn, from int) error {
	first, err := migrations.First()
	if err != nil || from == 0 || from >= first {
		return err
	}
	if from < migrations.Oldest {
		return schemaError("the database has schema version %d, and this program upgrades from version %d on: start the "+
			"last Loci with version %[2]d once on this database (commit c497c00f), and then this one", from,
			migrations.Oldest)
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		steps, last, err := migrations.Since(from)
		if err != nil {
			return err
		}
		for _, sql := range steps {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		missing, err := missingParts(ctx, tx)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return schemaError("the schema of version %d is not the one that Loci made: it lacks %s. Nothing was changed: "+
				"restore a backup into a new database", from, strings.Join(missing[:min(len(missing), shownParts)], "; "))
		}
		_, err = tx.Exec(ctx, `UPDATE schema_migrations SET version = $1, dirty = false`, last)
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Detail != "" {
		err = fmt.Errorf("%w: %s", err, pg.Detail)
	}
	return err
}

// shownParts is how many missing parts an error lists.
const shownParts = 5

// comparedSchema is the Postgres schema in which the baseline is made to compare with, and rolled back.
const comparedSchema = "loci_baseline"

// missingParts returns the parts of the baseline that the schema lacks, or has in another form. Parts that Loci did not
// make may be there: indexes of vectors, which servers make, and what the operator added.
func missingParts(ctx context.Context, tx pgx.Tx) (missing []string, err error) {
	have, err := Catalogue(ctx, tx)
	if err != nil {
		return nil, err
	}
	want, err := baseline(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, part := range want {
		if _, found := slices.BinarySearch(have, part); !found {
			missing = append(missing, part)
		}
	}
	return missing, nil
}

// baseline returns the catalogue of a new schema.
func baseline(ctx context.Context, tx pgx.Tx) (parts []string, err error) {
	files, _, err := migrations.Since(0)
	if err != nil {
		return nil, err
	}
	within, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, within.Rollback(ctx)) }()
	for _, sql := range append([]string{`
		CREATE SCHEMA ` + comparedSchema + `;
		SELECT set_config('search_path', '` + comparedSchema + `, ' || current_setting('search_path'), true);
		CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`}, files...) {
		if _, err := within.Exec(ctx, sql); err != nil {
			if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.InsufficientPrivilege {
				return nil, schemaError("the role that owns the schema may not create the schema %s for the time of the "+
					"upgrade: let a superuser run GRANT CREATE ON DATABASE to it once (%s)", comparedSchema, pg.Message)
			}
			return nil, err
		}
	}
	return Catalogue(ctx, within)
}

// Catalogue returns a line for each part of Loci's schema, in the order of their bytes: tables, columns, constraints,
// indexes, sequences, triggers, functions and views. A constraint that does not hold for older rows is the same as one
// that does. The order of columns does not count, nor do parentheses, which a dump adds and removes.
func Catalogue(ctx context.Context, d DB) ([]string, error) {
	parts, err := All[string](ctx, d, selectCatalogue, migrations.Tables(), migrations.Functions(),
		migrations.Views())
	slices.Sort(parts)
	return parts, err
}

// selectCatalogue selects the parts of the tables $1, the functions $2 and the views $3.
const selectCatalogue = `
	WITH tables AS (
		SELECT oid, relname AS name, relpersistence, reloptions FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ANY ($1)
	), parts AS (
		SELECT format('table %s %s %s', name, relpersistence, reloptions) AS part FROM tables
		UNION ALL
		SELECT format('column %s of %s: %s %s%s%s%s %s %s', attname, name, format_type(atttypid, atttypmod),
		              pg_get_expr(adbin, adrelid), CASE WHEN attnotnull THEN ' NOT NULL' END, attidentity, attgenerated,
		              attstorage, attcompression)
		FROM tables t JOIN pg_attribute a ON attrelid = t.oid
		LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE attnum > 0 AND NOT attisdropped
		UNION ALL
		SELECT format('constraint %s of %s: %s', conname, name, replace(pg_get_constraintdef(c.oid), ' NOT VALID', ''))
		FROM tables t JOIN pg_constraint c ON conrelid = t.oid
		WHERE contype <> 'n'
		UNION ALL
		SELECT format('index of %s: %s%s', name, pg_get_indexdef(indexrelid), CASE WHEN NOT indisvalid THEN ' invalid' END)
		FROM tables t JOIN pg_index ON indrelid = t.oid
		UNION ALL
		SELECT format('trigger %s of %s', tgname, name) FROM tables t JOIN pg_trigger ON tgrelid = t.oid
		WHERE NOT tgisinternal
		UNION ALL
		SELECT format('sequence %s of %s: %s', s.relname, t.name, format_type(seqtypid, -1))
		FROM tables t JOIN pg_depend d ON d.refobjid = t.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
		JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_sequence ON seqrelid = s.oid
		UNION ALL
		SELECT format('function %s(%s) %s: %s', proname, pg_get_function_identity_arguments(oid), provolatile,
		              coalesce(pg_get_function_sqlbody(oid), prosrc))
		FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname = ANY ($2)
		UNION ALL
		SELECT format('view %s: %s', relname, pg_get_viewdef(oid)) FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind = 'v' AND relname = ANY ($3)
	)
	SELECT regexp_replace(replace(part, current_schema() || '.', ''), '[()]', '', 'g') FROM parts`
