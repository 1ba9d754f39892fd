package db

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tx runs fn in a transaction. If Postgres aborts the transaction because of a deadlock or a conflict, Tx runs fn
// again, at most twice. If d is a transaction itself, Tx runs fn once, in a savepoint, because only the outer
// transaction can be repeated. ErrUnconfirmed if the transaction may have been committed.
func Tx(ctx context.Context, d DB, fn func(tx pgx.Tx) error) error {
	first := 1
	_, nested := d.(pgx.Tx)
	if nested {
		first = 3
	}
	for attempt := first; ; attempt++ {
		commits := false
		err := pgx.BeginFunc(ctx, d, func(tx pgx.Tx) error {
			err := fn(tx)
			commits = err == nil && !nested
			return err
		})
		if commits {
			err = unconfirmed(err)
		}
		if attempt == 3 || !Deadlocked(err) {
			return Error(err)
		}
	}
}

// Snapshot runs fn in a read-only transaction that sees the database at one moment. d must not be a transaction.
func Snapshot(ctx context.Context, d DB, fn func(tx pgx.Tx) error) error {
	pool, ok := d.(interface {
		BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	})
	if !ok {
		return errors.New("a snapshot cannot begin within a transaction")
	}
	return Error(pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}

// One returns the single row of a query, read by column name. ErrNotFound if the query yields no row.
func One[T any](ctx context.Context, d DB, sql string, args ...any) (T, error) {
	rows, _ := d.Query(ctx, sql, args...) // rows has its error, too
	row, err := pgx.CollectExactlyOneRow(rows, counted(ctx, scanner[T]()))
	return row, Error(err)
}

// All returns every row of a query, read by column name. It is never nil.
func All[T any](ctx context.Context, d DB, sql string, args ...any) ([]T, error) {
	rows, _ := d.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, counted(ctx, scanner[T]()))
	return all, Error(err)
}

// Budget limits how many bytes of rows are read together. If More is not nil, it receives the rows beyond the limit one
// by one; otherwise they are not read.
type Budget[T any] struct {
	Bytes int64
	More  func(T)
}

// Within returns the rows of a query within a budget, but at least one. The bool reports whether these are all rows.
func Within[T any](ctx context.Context, d DB, to Budget[T], sql string, args ...any) ([]T, bool, error) {
	rows, _ := d.Query(ctx, sql, args...)
	defer rows.Close()
	scan, read, whole, all := counted(ctx, scanner[T]()), int64(0), true, []T{}
	for rows.Next() {
		read += sizeOf(rows.RawValues())
		whole = whole && (read <= to.Bytes || len(all) == 0)
		if !whole && to.More == nil {
			return all, false, nil
		}
		row, err := scan(rows)
		if err != nil {
			return nil, false, Error(err)
		}
		if whole {
			all = append(all, row)
		} else {
			to.More(row)
		}
	}
	return all, whole, Error(rows.Err())
}

func sizeOf(values [][]byte) (bytes int64) {
	for _, value := range values {
		bytes += int64(len(value))
	}
	return bytes
}

// Reading is called with the number of bytes of each row that is read. If it returns an error, reading stops.
type Reading func(bytes int64) error

type readingKey struct{}

// WithReading returns a context with which One and All call r for each row.
func WithReading(ctx context.Context, r Reading) context.Context {
	return context.WithValue(ctx, readingKey{}, r)
}

// counted makes scan call the Reading of ctx for each row.
func counted[T any](ctx context.Context, scan pgx.RowToFunc[T]) pgx.RowToFunc[T] {
	reading, _ := ctx.Value(readingKey{}).(Reading)
	if reading == nil {
		return scan
	}
	return func(row pgx.CollectableRow) (T, error) {
		if err := reading(sizeOf(row.RawValues())); err != nil {
			var none T
			return none, err
		}
		return scan(row)
	}
}

// Exec runs a statement that must affect a row. ErrNotFound if it affects none; ErrUnconfirmed if it may have been
// carried out and d is not a transaction.
func Exec(ctx context.Context, d DB, sql string, args ...any) error {
	tag, err := d.Exec(ctx, sql, args...)
	if _, nested := d.(pgx.Tx); err != nil && !nested {
		err = unconfirmed(err)
	}
	if err != nil {
		return Error(err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// scanner returns a function that reads a struct by its `db` tags, and any other type from a single column.
func scanner[T any]() pgx.RowToFunc[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() {
		return pgx.RowToStructByName[T]
	}
	return pgx.RowTo[T]
}

// EachOrg calls fn for each organization that a query yields as its only column. The query may read all nodes of a
// cluster. If one of them is away, fn is called for every organization, so that the work for those on other nodes goes
// on. EachOrg returns the errors of the query and of all calls.
func EachOrg(ctx context.Context, d DB, fn func(Org) error, sql string, args ...any) error {
	orgs, err := All[Org](ctx, d, sql, args...)
	if Unavailable(err) {
		var failed error
		if orgs, failed = All[Org](ctx, d, `SELECT org FROM organizations ORDER BY org`); failed != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	err = nil
	for _, org := range orgs {
		if err = errors.Join(err, fn(org)); ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Named returns columns for a statement with named arguments: its $1, the organization, becomes @org. A subquery in a
// list of columns names the organization itself, because in a cluster the row's own does not say on which node it is.
func Named(columns string) string { return strings.ReplaceAll(columns, "$1", "@org") }

// AgentKey returns the key of an agent, which its rows refer to. ErrNotFound if there is no such agent.
func AgentKey(ctx context.Context, d DB, org Org, agentID string) (int64, error) {
	key, err := One[int64](ctx, d, `SELECT key FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	return key, OrNotFound(err, "Agent with ID %s not found", agentID)
}
