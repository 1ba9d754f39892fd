package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/loci-memory/loci/db/migrations"
)

// Keys of advisory locks. A migration holds lockMigrate; a server shares it while it starts to serve.
const (
	lockMigrate = 0x6c6f6369
	LockIndex   = 0x6c6f6978 // held by the server that builds an index
	LockReembed = 0x6c6f7265 // held by the server that computes the vectors of a new space
	LockWriter  = 0x6c6f7772 // shared by the servers that have a model to write summaries
	LockServer  = 0x6c6f6a62 // first half of a running server's lock; the second half is a hash of its ID
)

// The oldest versions with which Loci works.
const (
	minPostgres = 150000
	minPgvector = "0.8"
)

// Migrated says what Migrate did.
type Migrated struct {
	From, To Schema
	Role     string // the role that serves, if it is not the owner
	Created  bool   // the role was created
	Open     bool   // the created role has no password
	Granted  int    // number of statements that gave the role rights; 0 if it had them
}

// Migrate brings a database to this program's schema, as the role that owns it: first Loci's own tables, then River's.
// It also gives the role that serves its rights. If several processes call it at once, they wait for each other. An
// interrupted migration is applied again, because each one is a single transaction. *SchemaError if the schema is newer
// than this program's, belongs to another program, is older while a server works on the database, or is older than
// those that this program converts.
func Migrate(ctx context.Context, u URLs) (m Migrated, err error) {
	conn, err := Dial(ctx, u.owner())
	if err != nil {
		return m, fmt.Errorf("reach the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lockMigrate)); err != nil {
		return m, fmt.Errorf("wait for the migration lock: %w", err)
	}
	if err := checkSameDatabase(ctx, conn, u); err != nil {
		return m, err
	}
	if m.To, err = current(); err != nil {
		return m, err
	}
	if m.From, err = readSchema(ctx, conn); err != nil {
		if _, ok := errors.AsType[*SchemaError](err); ok {
			return m, err
		}
		return m, fmt.Errorf("read the version of the schema: %w", err)
	}
	if err := m.From.newer(m.To); err != nil {
		return m, err
	}
	if m.From != (Schema{}) && m.From != m.To {
		if err := awaitNoServer(ctx, conn, m); err != nil {
			return m, err
		}
	}
	if err := prepare(ctx, conn); err != nil {
		return m, err
	}
	if err := convert(ctx, conn, m.From.Version); err != nil {
		if _, ok := errors.AsType[*SchemaError](err); ok {
			return m, err
		}
		return m, fmt.Errorf("convert the schema of version %d: %w", m.From.Version, err)
	}
	if err := migrateOwn(conn.Config()); err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.DuplicateTable {
			return m, schemaError("the table schema_migrations says that the schema has version %d, and the database has a "+
				"table of a later one (%s): set its version to that of the tables, with dirty false, or restore a backup",
				m.From.Version, pg.Message)
		}
		return m, fmt.Errorf("migrate the schema: %w", err)
	}
	if err := migrateJobs(ctx, u.owner()); err != nil {
		return m, fmt.Errorf("migrate the job queue: %w", err)
	}
	return m, m.grant(ctx, conn, u.Server)
}

// prepare checks the versions of Postgres and pgvector, and creates the extension.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	var version int
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return fmt.Errorf("read the server's version: %w", err)
	}
	if version < minPostgres {
		return fmt.Errorf("Postgres %d is too old: Loci needs 15 or newer", version/10000)
	}
	if _, err := conn.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS vector`); err != nil {
		return extensionError(err)
	}
	var vector string
	err := conn.QueryRow(ctx, `SELECT extversion FROM pg_extension WHERE extname = 'vector'`).Scan(&vector)
	if err != nil {
		return fmt.Errorf("read pgvector's version: %w", err)
	}
	if !atLeast(vector, minPgvector) {
		return fmt.Errorf("pgvector %s is too old: Loci needs %s or newer "+
			"(after installing it, run ALTER EXTENSION vector UPDATE)", vector, minPgvector)
	}
	return nil
}

func extensionError(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "0A000", "58P01": // feature_not_supported, undefined_file: the extension's files are missing
			return fmt.Errorf("the Postgres server has no pgvector: install it on the server's machine "+
				"(package postgresql-NN-pgvector), or use the pgvector/pgvector image: %w", err)
		case "42501": // insufficient_privilege
			return fmt.Errorf("this database user may not create the extension: "+
				"let a superuser run CREATE EXTENSION vector once: %w", err)
		}
	}
	return fmt.Errorf("create the extension vector: %w", err)
}

// atLeast reports whether a dotted version is least or higher.
func atLeast(version, least string) bool {
	have, want := strings.Split(version, "."), strings.Split(least, ".")
	for i, w := range want {
		if i >= len(have) {
			return false
		}
		h, _ := strconv.Atoi(have[i])
		n, _ := strconv.Atoi(w)
		if h != n {
			return h > n
		}
	}
	return true
}

func migrateOwn(config *pgx.ConnConfig) error {
	files, err := iofs.New(migrations.Files, ".")
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*config)
	driver, err := migratepgx.WithInstance(pool, &migratepgx.Config{})
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	m, err := migrate.NewWithInstance("embedded", files, "pgx5", &statementwise{driver, pool})
	if err != nil {
		return errors.Join(err, driver.Close())
	}
	// The session of a killed program may still be running a migration. It holds this lock until it ends.
	if err = errors.Join(driver.Lock(), driver.Unlock()); err == nil {
		err = up(m, files)
	}
	sourceErr, driverErr := m.Close()
	return errors.Join(err, sourceErr, driverErr)
}

// up applies the missing migrations. A dirty version was begun and not applied, so the schema is at the version before
// it.
func up(m *migrate.Migrate, known source.Driver) error {
	version, dirty, err := m.Version()
	if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
		return err
	}
	if dirty {
		before := -1 // golang-migrate's "no version"
		if previous, err := known.Prev(version); err == nil {
			before = int(previous) //nolint:gosec // versions are small
		}
		if err := m.Force(before); err != nil {
			return err
		}
	}
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("version %d: %w", version, err)
	}
	return nil
}

func migrateJobs(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
