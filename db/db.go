// Package db opens Loci's Postgres, brings its schema up to date, and holds what every memory shares: the three errors
// that a caller can act on, the row helpers, the pages of lists, and the organization that each row belongs to.
package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvec "github.com/pgvector/pgvector-go/pgx"
)

// Org is the key of the organization that a row belongs to. Every statement on a tenant's table carries one.
type Org int32

// DB runs statements. *pgxpool.Pool and pgx.Tx implement it.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// The errors that a caller can act on. Any other error is the server's own failure.
var (
	// ErrNotFound: the named thing does not exist in this organization.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the request contradicts stored data.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: an argument breaks a rule, which the text names.
	ErrInvalid = errors.New("invalid")
	// ErrTooMany: the organization has as many of these at once as it may.
	ErrTooMany = errors.New("too many")
	// ErrBusy: other requests delay this one; the same request may succeed in some seconds.
	ErrBusy = errors.New("busy")
)

// ErrUnreachable means that a connection to the database could not be made, or broke.
var ErrUnreachable = errors.New("the database cannot be reached")

// caused is an error whose text is a sentence for the caller, and whose kind is one of the errors above.
type caused struct {
	kind error
	text string
}

func (c *caused) Error() string { return c.text }
func (c *caused) Unwrap() error { return c.kind }

// NotFound returns an error of the kind ErrNotFound with the given sentence.
func NotFound(format string, args ...any) error {
	return &caused{ErrNotFound, fmt.Sprintf(format, args...)}
}

// Busy returns an error of the kind ErrBusy with the given sentence.
func Busy(format string, args ...any) error { return &caused{ErrBusy, fmt.Sprintf(format, args...)} }

// TooMany returns an error of the kind ErrTooMany with the given sentence.
func TooMany(format string, args ...any) error {
	return &caused{ErrTooMany, fmt.Sprintf(format, args...)}
}

// OrNotFound returns an ErrNotFound with the given sentence for an ErrNotFound, and any other error unchanged.
func OrNotFound(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return NotFound(format, args...)
	}
	return err
}

// AgentKey returns the key of an agent, by which its rows are stored. ErrNotFound if there is no such agent.
func AgentKey(ctx context.Context, d DB, org Org, agentID string) (int64, error) {
	key, err := One[int64](ctx, d, `SELECT key FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	return key, OrNotFound(err, "Agent with ID %s not found", agentID)
}

// Conflict returns an error of the kind ErrConflict with the given sentence.
func Conflict(format string, args ...any) error {
	return &caused{ErrConflict, fmt.Sprintf(format, args...)}
}

// Invalid returns an error of the kind ErrInvalid with the given sentence.
func Invalid(format string, args ...any) error {
	return &caused{ErrInvalid, fmt.Sprintf(format, args...)}
}

// Open migrates the database at url to this program's schema and returns a pool on it.
func Open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	if err := Migrate(ctx, url); err != nil {
		return nil, err
	}
	return Connect(ctx, url)
}

func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	return config, nil
}

// Dial opens a connection outside any pool.
func Dial(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// maxConns is the size of a pool whose URL does not set pool_max_conns.
const maxConns = 16

// Connect returns a pool on a database whose schema is up to date, with pgvector's types registered.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = setUp
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return pool, nil
}

// setUp prepares a new connection. JIT compilation costs our statements more than it saves.
func setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `SET jit = off`); err != nil {
		return err
	}
	return pgxvec.RegisterTypes(ctx, conn)
}

// broken reports whether a connection ended under a statement.
func broken(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Tx runs fn in a transaction, and again, at most twice, if Postgres aborted it because of a deadlock or a conflict.
// If d is a transaction itself, Tx runs fn once, in a savepoint: only the outer transaction can be run again.
func Tx(ctx context.Context, d DB, fn func(tx pgx.Tx) error) error {
	first := 1
	if _, nested := d.(pgx.Tx); nested {
		first = 3
	}
	for attempt := first; ; attempt++ {
		err := pgx.BeginFunc(ctx, d, fn)
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if attempt == 3 || !ok || pg.Code != "40P01" && pg.Code != "40001" {
			return Error(err)
		}
	}
}

// One returns the single row of a query, read by column name; ErrNotFound if there is none.
func One[T any](ctx context.Context, d DB, sql string, args ...any) (T, error) {
	rows, _ := d.Query(ctx, sql, args...) // its error is also in rows
	row, err := pgx.CollectExactlyOneRow(rows, scanner[T]())
	return row, Error(err)
}

// All returns every row of a query, read by column name; never nil.
func All[T any](ctx context.Context, d DB, sql string, args ...any) ([]T, error) {
	rows, _ := d.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, scanner[T]())
	return all, Error(err)
}

// Exec runs a statement that must touch a row; ErrNotFound if it touched none.
func Exec(ctx context.Context, d DB, sql string, args ...any) error {
	tag, err := d.Exec(ctx, sql, args...)
	if err != nil {
		return Error(err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// Error adds ErrNotFound, ErrConflict, ErrInvalid or ErrUnreachable to an error of Postgres that means one of them, and
// returns any other error unchanged.
func Error(err error) error {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case !answered && broken(err):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case !answered:
		return err
	}
	switch pg.Code {
	case "23505": // unique_violation
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case "23503": // foreign_key_violation
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case "23514", "23502", "22P02", "22021", "22003", "22P05", "22001": // check, not null, syntax, encoding, range, length
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}
