package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/loci-memory/loci/db/migrations"
)

// Schema is the version of a database's schema: the numbers of the newest migrations of Loci (Version) and of River
// (Jobs). A database without Loci has the zero Schema.
type Schema struct {
	Version int
	Jobs    int
}

// SchemaError is the error that a database's schema is not the one of this program. Its text says what to do. Trying
// again does not help.
type SchemaError struct {
	text    string
	another bool
}

func (e *SchemaError) Error() string { return e.text }

// IsAnother reports whether the schema is of another version. Otherwise the database has no schema, or its role may not
// use it, as while a backup is restored.
func (e *SchemaError) IsAnother() bool { return e.another }

// Is implements errors.Is, so that LacksSchema recognizes this error, too.
func (e *SchemaError) Is(target error) bool { return target == errLacking }

func schemaError(format string, args ...any) error {
	return &SchemaError{text: fmt.Sprintf(format, args...)}
}

// current returns the schema that this program needs.
func current() (s Schema, err error) {
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil {
		return s, err
	}
	if s.Version, err = strconv.Atoi(path.Base(slices.Max(names))[:4]); err != nil {
		return s, err
	}
	jobs, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return s, err
	}
	for _, m := range jobs.AllVersions() {
		s.Jobs = max(s.Jobs, m.Version)
	}
	return s, nil
}

// ProgramSchema returns the schema that this program needs.
func ProgramSchema() (Schema, error) { return current() }

// SchemaOf returns the schema of a database.
func SchemaOf(ctx context.Context, conn *pgx.Conn) (Schema, error) { return readSchema(ctx, conn) }

// readSchema returns the schema of a database. A dirty version does not count, because it was begun and not applied.
// *SchemaError if the tables belong to another program.
func readSchema(ctx context.Context, d querier) (s Schema, err error) {
	if err := checkOwn(ctx, d); err != nil {
		return s, err
	}
	var own, jobs bool
	first, err := migrations.First()
	if err != nil {
		return s, err
	}
	err = d.QueryRow(ctx, `
		SELECT to_regclass('schema_migrations') IS NOT NULL, to_regclass('river_migration') IS NOT NULL`).Scan(&own, &jobs)
	if err == nil && own {
		err = d.QueryRow(ctx, `
			SELECT coalesce(max(version - dirty::int), 0) FROM schema_migrations WHERE NOT dirty OR version <> $1`,
			first).Scan(&s.Version)
	}
	if err == nil && jobs {
		err = d.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM river_migration`).Scan(&s.Jobs)
	}
	return s, err
}

// checkOwn returns *SchemaError if the database schema for Loci's tables has another program's tables: a table of
// versions or a job queue without Loci's first table, or tables with Loci's names.
func checkOwn(ctx context.Context, d querier) error {
	var own bool
	err := d.QueryRow(ctx, `
		SELECT 5 = (
			SELECT count(*) FROM pg_attribute
			WHERE attrelid = to_regclass('schema_migrations') AND attname IN ('version', 'dirty')
			   OR attrelid = to_regclass('organizations') AND attname IN ('org', 'id', 'name'))`).Scan(&own)
	if err != nil || own {
		return err
	}
	var began bool
	var others []string
	names := append(slices.Clone(migrations.Tables()), "schema_migrations", "river_job", "river_migration")
	if err := d.QueryRow(ctx, `
		SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}')
		FROM pg_class c
		WHERE c.relnamespace = to_regnamespace(current_schema()) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		  AND c.relname = ANY ($1)`, names).Scan(&others); err != nil {
		return err
	}
	// A first migration that was interrupted leaves only this table, empty.
	first, err := migrations.First()
	if err != nil {
		return err
	}
	if slices.Equal(others, []string{"schema_migrations"}) {
		err = d.QueryRow(ctx, `
			SELECT NOT EXISTS (SELECT FROM schema_migrations m WHERE to_jsonb(m) ->> 'version' <> $1) AND 2 = (
				SELECT count(*) FROM pg_attribute
				WHERE attrelid = to_regclass('schema_migrations') AND attname IN ('version', 'dirty'))`,
			strconv.Itoa(first)).Scan(&began)
		if err != nil {
			return err
		}
	}
	if began || len(others) == 0 {
		return nil
	}
	return schemaError("the database has tables of another program (%s), which Loci does not touch: name a database of "+
		"Loci's own, or add ?search_path= with a schema of its own to the URL",
		strings.Join(others[:min(len(others), 5)], ", "))
}

// newer returns an error if s is newer than this program's schema.
func (s Schema) newer(program Schema) error {
	const advice = "run the Loci that migrated it, or a newer one"
	switch {
	case s.Version > program.Version:
		return schemaError("the database has schema version %d, and this program knows versions up to %d: %s",
			s.Version, program.Version, advice)
	case s.Jobs > program.Jobs:
		return schemaError("the schema of the database's job queue has version %d, and this program knows versions up to "+
			"%d: %s", s.Jobs, program.Jobs, advice)
	}
	return nil
}

// older says in which way s is older than this program's schema. It returns "" if it is not.
func (s Schema) older(program Schema) string {
	switch {
	case s.Version == 0 && program.Version > 0:
		return "the database has no schema of Loci"
	case s.Version < program.Version:
		return fmt.Sprintf("the database has schema version %d, and this program needs version %d",
			s.Version, program.Version)
	case s.Jobs < program.Jobs:
		return fmt.Sprintf("the schema of the database's job queue has version %d, and this program needs version %d",
			s.Jobs, program.Jobs)
	}
	return ""
}

// CheckSchema returns *SchemaError if a database's schema is not this program's, or may not be read.
func CheckSchema(ctx context.Context, d querier) error {
	const advice = "stop every server of Loci on this database, then run 'loci migrate' with LOCI_DATABASE_OWNER_URL " +
		"set to the URL of the role that owns the schema"
	program, err := current()
	if err != nil {
		return err
	}
	schema, err := readSchema(ctx, d)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.InsufficientPrivilege {
		return schemaError("this database role has no rights on the tables of Loci (%s): run 'loci migrate' with "+
			"LOCI_DATABASE_URL set to the URL of this role, and LOCI_DATABASE_OWNER_URL to that of the role that owns the "+
			"schema", pg.Message)
	}
	if _, ok := errors.AsType[*SchemaError](err); ok {
		return err
	}
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	err = schema.newer(program)
	if older := schema.older(program); err == nil && older != "" {
		err = schemaError("%s: %s", older, advice)
	}
	if wrong, ok := errors.AsType[*SchemaError](err); ok {
		wrong.another = schema.isAnother(program)
	}
	return err
}

// SpreadingTable exists while the tables of a database are spread over a cluster, and keeps their foreign keys.
const SpreadingTable = "spread_references"

// checkSpread returns *SchemaError if the tables are spread in part, and lack foreign keys.
func checkSpread(ctx context.Context, d querier) error {
	var began bool
	if err := d.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, SpreadingTable).Scan(&began); err != nil || !began {
		return err
	}
	return schemaError("the tables are being spread over the nodes of a cluster: wait for the end of 'loci migrate " +
		"spread', or run it again if it was stopped")
}

// isAnother reports whether there is a schema, and it is of another version.
func (s Schema) isAnother(program Schema) bool {
	return s.Version > 0 && s.Version != program.Version || s.Jobs > 0 && s.Jobs != program.Jobs
}
