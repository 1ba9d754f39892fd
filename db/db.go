// Package db opens Loci's Postgres, brings its schema up to date, and holds what every memory shares: the errors that a
// caller can act on, the row helpers, the pages of lists, and the organization that each row belongs to.
//
// Each file uses only the files named before it:
//   - connections, statements and their errors: quota.go pause.go patience.go shares.go lacking.go errors.go rows.go
//     db.go diskspace.go
//   - what the memories share: page.go text.go moments.go provenance.go userscope.go validity.go lease.go stored.go
//     deletion.go
//   - the schema, and who may change it: sharedtables.go schema.go parts.go roles.go presence.go conversion.go
//     statementwise.go migrate.go
//   - work on whole tables: analyze.go purge.go
//   - the examination of a database: probe.go examine.go
package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvec "github.com/pgvector/pgvector-go/pgx"
)

// Org is the key of an organization. Every row of a tenant's table belongs to one, and every statement on such a table
// names it.
type Org int32

// Orgs returns the organizations that are not deleted, ordered by key.
func Orgs(ctx context.Context, d DB) ([]Org, error) {
	return All[Org](ctx, d, `SELECT org FROM organizations WHERE deleted_at IS NULL ORDER BY org`)
}

// DB runs statements. *pgxpool.Pool and pgx.Tx implement it.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if _, set := os.LookupEnv("PGCONNECT_TIMEOUT"); !set && !strings.Contains(url, "connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return config, nil
}

// connectTimeout limits one attempt to connect if the URL has no connect_timeout. A suspended Postgres, and a host that
// drops packets, never answer.
const connectTimeout = 10 * time.Second

// reach calls connect. If the URL names one host, connect gets the time of one attempt, because otherwise it would try
// again without TLS. If the database does not answer, the error says what to check.
func reach(ctx context.Context, config *pgx.ConnConfig, connect func(context.Context) error) error {
	bounded, cancel := ctx, func() {}
	others := slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host })
	if !others && config.ConnectTimeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, config.ConnectTimeout)
	}
	defer cancel()
	err := connect(bounded)
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)) {
		return fmt.Errorf("the database at %s port %d does not answer within %s: check that the database URL names it, that "+
			"Postgres runs there and is not suspended, and that no firewall drops what is sent to it; connect_timeout=SECONDS "+
			"in the URL gives it another time", config.Host, config.Port, config.ConnectTimeout)
	}
	return err
}

// Dial opens a connection outside any pool.
func Dial(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	var conn *pgx.Conn
	err = reach(ctx, config.ConnConfig, func(ctx context.Context) (err error) {
		conn, err = pgx.ConnectConfig(ctx, config.ConnConfig)
		return err
	})
	return conn, err
}

// maxConns is the size of a pool if the URL has no pool_max_conns.
const maxConns = 16

// Connect returns a pool on a database with an up-to-date schema. pgvector's types are registered.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	return ConnectWith(ctx, url, Options{})
}

// Options are settings of a pool that the URL does not have.
type Options struct {
	// Tracer receives each statement; may be nil.
	Tracer pgx.QueryTracer
	// Changed is called when Postgres says that its own files were replaced since it started; may be nil.
	Changed func()
	// Away is called before each new connection. If it returns an error, no connection is made; may be nil.
	Away func() error
}

// ConnectWith is Connect with options.
func ConnectWith(ctx context.Context, url string, o Options) (*pgxpool.Pool, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = setUp
	if o.Away != nil {
		config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return o.Away() }
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	tracers := []pgx.QueryTracer{&patient{looker(config.ConnConfig)}, shareConnections(config)}
	if o.Tracer != nil {
		tracers = append(tracers, o.Tracer)
	}
	config.ConnConfig.Tracer = multitracer.New(tracers...)
	var opened atomic.Pointer[pgxpool.Pool]
	config.ConnConfig.OnPgError = keepConnection(o.Changed, func() {
		if pool := opened.Load(); pool != nil {
			pool.Reset()
		}
	})
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	opened.Store(pool)
	if err := reach(ctx, config.ConnConfig, pool.Ping); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return pool, nil
}

// setUp prepares a new connection. It turns JIT compilation off, which costs our statements more than it saves. It
// makes times be read in UTC, whatever the time zones of this machine and of Postgres are. In a cluster, the last
// setting makes SET LOCAL hold on the node that a statement goes to; elsewhere it has no meaning.
func setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `
		SET jit = off; SET timezone = 'UTC'; SET citus.propagate_set_commands = 'local'`); err != nil {
		return err
	}
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	err := pgxvec.RegisterTypes(ctx, conn)
	if _, answered := errors.AsType[*pgconn.PgError](err); err != nil && !answered && !conn.IsClosed() {
		return fmt.Errorf("%w: %w", errLacking, err) // the type does not exist
	}
	return err
}
