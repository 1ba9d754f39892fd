package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// URLs are the connections to a database: Server for the role that serves, Owner for the role that owns the schema and
// may change it. If Owner is empty, it is Server. If Server is empty, no role serves.
type URLs struct{ Server, Owner string }

func (u URLs) owner() string { return cmp.Or(u.Owner, u.Server) }

// Open returns a pool for the role that serves, on a database with this program's schema. It migrates the database
// first if it knows a role that owns the schema, or that may create one in an empty database. Otherwise it returns
// *SchemaError if the schema is another one.
func Open(ctx context.Context, u URLs) (*pgxpool.Pool, error) { return OpenWith(ctx, u, Options{}) }

// OpenWith is Open with options.
func OpenWith(ctx context.Context, u URLs, o Options) (*pgxpool.Pool, error) {
	owns := u.Owner != ""
	if !owns {
		err := dialed(ctx, u.Server, func(conn *pgx.Conn) (err error) { owns, err = Owns(ctx, conn); return err })
		if err != nil {
			return nil, err
		}
	}
	if owns {
		// A database that can store nothing may have the schema already.
		if _, err := Migrate(ctx, u); UnlessFull(err) != nil {
			return nil, err
		}
	}
	err := dialed(ctx, u.Server, func(conn *pgx.Conn) error {
		if err := CheckSchema(ctx, conn); err != nil {
			return err
		}
		if err := checkSpread(ctx, conn); err != nil {
			return err
		}
		return checkRights(ctx, conn)
	})
	if err != nil {
		return nil, err
	}
	return ConnectWith(ctx, u.Server, o)
}

// dialed calls fn with a connection outside any pool.
func dialed(ctx context.Context, url string, fn func(*pgx.Conn) error) error {
	conn, err := Dial(ctx, url)
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fn(conn)
}

// Owns reports whether d's role owns Loci's schema, or may create it if there is none.
func Owns(ctx context.Context, d querier) (owns bool, err error) {
	err = d.QueryRow(ctx, `
		SELECT coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('schema_migrations')),
			has_schema_privilege(current_schema(), 'CREATE'), false)`).Scan(&owns)
	return owns, err
}

// The owner's pool. The owner builds one index at a time, and watches the progress.
const (
	ownerConns    = 4
	ownerIdleTime = time.Minute
)

// OpenOwner returns a pool for the role that owns the schema. It connects to u.Owner if that is set. Otherwise it
// returns pool if its role owns the schema, else nil.
func OpenOwner(ctx context.Context, u URLs, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	if u.Owner == "" {
		if owns, err := Owns(ctx, pool); err != nil || !owns {
			return nil, err
		}
		return pool, nil
	}
	config, err := parse(u.Owner)
	if err != nil {
		return nil, err
	}
	config.AfterConnect, config.MaxConns, config.MaxConnIdleTime = setUp, ownerConns, ownerIdleTime
	return pgxpool.NewWithConfig(ctx, config)
}

// grant gives the role in a URL the rights to serve, and creates the role if it is missing. It does nothing if the role
// is the owner.
func (m *Migrated) grant(ctx context.Context, owner *pgx.Conn, url string) error {
	if url == "" {
		return nil
	}
	config, err := parse(url)
	if err != nil {
		return err
	}
	role, password := config.ConnConfig.User, config.ConnConfig.Password
	if role == owner.Config().User {
		return nil
	}
	m.Role = role
	if m.Created, err = createRole(ctx, owner, role, password); err != nil {
		return err
	}
	m.Open = m.Created && password == ""
	rows, _ := owner.Query(ctx, missingRights, role) // rows has its error, too
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look up the rights of role %s: %w", role, err)
	}
	for _, sql := range statements {
		if _, err := owner.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	m.Granted = len(statements)
	return nil
}

// createRole creates a role that may only log in, unless it exists. Other databases may create it at the same time.
func createRole(ctx context.Context, owner *pgx.Conn, role, password string) (created bool, err error) {
	var sql string
	err = owner.QueryRow(ctx, `
		SELECT CASE
			WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = $1) THEN ''
			WHEN $2 = '' THEN format('CREATE ROLE %I LOGIN', $1)
			ELSE format('CREATE ROLE %I LOGIN PASSWORD %L', $1, $2) END`, role, password).Scan(&sql)
	if err != nil || sql == "" {
		return false, err
	}
	_, err = owner.Exec(ctx, sql)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case pgerrcode.DuplicateObject, pgerrcode.UniqueViolation:
			return false, nil
		case pgerrcode.InsufficientPrivilege:
			return false, fmt.Errorf("there is no role %[1]s, and role %[2]s may not create it: "+
				"let a superuser run CREATE ROLE %[1]s LOGIN PASSWORD '…' once", role, owner.Config().User)
		}
	}
	return err == nil, err
}

// checkSameDatabase returns an error if the URLs of the two roles name different databases. Only in the same database
// does a session see the other role's advisory locks. The role that serves may not exist yet.
func checkSameDatabase(ctx context.Context, owner *pgx.Conn, u URLs) error {
	if u.Server == "" || u.Server == owner.Config().ConnString() {
		return nil
	}
	config, err := parse(u.Server)
	if err != nil {
		return err
	}
	serving, ownerConfig := config.ConnConfig.Database, owner.Config()
	if config.ConnConfig.Host == ownerConfig.Host && config.ConnConfig.Port == ownerConfig.Port &&
		serving == ownerConfig.Database {
		return nil // no connection: Postgres would log an error for a role that does not exist
	}
	different := fmt.Errorf("the URL of the role that serves names database %s, and that of the owner of the schema "+
		"another one, %s: let LOCI_DATABASE_URL and LOCI_DATABASE_OWNER_URL name the same", serving, ownerConfig.Database)
	conn, err := Dial(ctx, u.Server)
	if err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.InvalidCatalogName ||
			serving != ownerConfig.Database {
			return different
		}
		return nil
	}
	defer conn.Close(context.WithoutCancel(ctx))
	key, same := rand.Int64(), false //nolint:gosec // no secret
	if _, err := owner.Exec(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, `SELECT NOT pg_try_advisory_lock($1)`, key).Scan(&same); err != nil {
		return err
	}
	if _, err := owner.Exec(ctx, `SELECT pg_advisory_unlock($1)`, key); err != nil || same {
		return err
	}
	return different
}

// shownRights is how many missing rights an error lists.
const shownRights = 5

// checkRights returns *SchemaError if d's role lacks rights to serve. The error has the statements that grant them.
func checkRights(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, missingRights, conn.Config().User) // rows has its error, too
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look up the rights of role %s: %w", conn.Config().User, err)
	}
	missing = slices.DeleteFunc(missing, func(sql string) bool { return !strings.HasPrefix(sql, "GRANT ") })
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if n := len(missing) - shownRights; n > 0 {
		missing, more = missing[:shownRights], fmt.Sprintf(", and %d more", n)
	}
	return schemaError("the database role %s lacks rights that a server needs (%s%s): run 'loci migrate' with "+
		"LOCI_DATABASE_URL set to the URL of this role, and LOCI_DATABASE_OWNER_URL to that of the role that owns the schema",
		conn.Config().User, strings.Join(missing, "; "), more)
}

// missingRights selects the statements that grant role $1 its missing rights to serve. They cover Loci's tables, views,
// sequences and functions, which have one owner, and those that the owner will create later.
const missingRights = `
	WITH schema AS (
		SELECT relnamespace AS oid, relnamespace::regnamespace AS name, relowner AS owner
		FROM pg_class WHERE oid = to_regclass('schema_migrations')
	), rights AS (
		SELECT CASE
			WHEN relkind = 'S' THEN 'USAGE, SELECT'
			WHEN relname IN ('schema_migrations', 'river_migration') THEN 'SELECT'
			ELSE 'SELECT, INSERT, UPDATE, DELETE' END AS rights, relkind, c.oid
		FROM pg_class c JOIN schema s ON c.relnamespace = s.oid AND c.relowner = s.owner
		WHERE relkind IN ('r', 'p', 'v', 'S')
	), lacking AS (
		SELECT format('GRANT USAGE ON SCHEMA %s TO %I', name, $1::text) AS sql FROM schema
		WHERE NOT has_schema_privilege($1, oid, 'USAGE')
		UNION ALL
		SELECT format('GRANT %s ON %s %s TO %I', rights, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
			oid::regclass, $1::text) FROM rights
		WHERE EXISTS (SELECT FROM unnest(string_to_array(rights, ', ')) AS r WHERE NOT CASE relkind
			WHEN 'S' THEN has_sequence_privilege($1, oid, r) ELSE has_table_privilege($1, oid, r) END)
		UNION ALL
		SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', f.oid::regprocedure, $1::text)
		FROM pg_proc f JOIN schema s ON f.pronamespace = s.oid AND f.proowner = s.owner
		WHERE NOT has_function_privilege($1, f.oid, 'EXECUTE')
	)
	SELECT sql FROM lacking
	UNION ALL
	SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s GRANT %s TO %I', owner::regrole, name, rights,
		$1::text)
	FROM schema, (VALUES ('SELECT, INSERT, UPDATE, DELETE ON TABLES'), ('USAGE, SELECT ON SEQUENCES'),
		('EXECUTE ON FUNCTIONS')) AS later (rights)
	WHERE EXISTS (SELECT FROM lacking)`
