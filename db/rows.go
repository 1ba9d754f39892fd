package db

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tx runs fn in a transaction, and again, at most twice, if Postgres aborted it because of a deadlock or a conflict.
// If d is a transaction itself, Tx runs fn once, in a savepoint: only the outer transaction can be run again. The error
// is an ErrUnconfirmed if the transaction may be committed.
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

// Snapshot runs fn in a transaction that reads the database as it is at one moment, and writes nothing. d is no
// transaction.
func Snapshot(ctx context.Context, d DB, fn func(tx pgx.Tx) error) error {
	pool, ok := d.(interface {
		BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error)
	})
	if !ok {
		return errors.New("a snapshot cannot begin within a transaction")
	}
	return Error(pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn))
}

// One returns the single row of a query, read by column name; ErrNotFound if the query yields none.
func One[T any](ctx context.Context, d DB, sql string, args ...any) (T, error) {
	rows, _ := d.Query(ctx, sql, args...) // its error is also in rows
	row, err := pgx.CollectExactlyOneRow(rows, counted(ctx, scanner[T]()))
	return row, Error(err)
}

// All returns every row of a query, read by column name; never nil.
func All[T any](ctx context.Context, d DB, sql string, args ...any) ([]T, error) {
	rows, _ := d.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, counted(ctx, scanner[T]()))
	return all, Error(err)
}

// Budget is how many bytes of rows are read together. More gets the rows behind them, one at a time; nil, if these are
// not read.
type Budget[T any] struct {
	Bytes int64
	More  func(T)
}

// Within returns the rows of a query within a budget, at least one, and reports whether there are no more.
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

// Reading is told how many bytes each row has that is read, and returns an error to read no more.
type Reading func(bytes int64) error

type readingKey struct{}

// WithReading returns a context whose One and All tell r what they read.
func WithReading(ctx context.Context, r Reading) context.Context {
	return context.WithValue(ctx, readingKey{}, r)
}

// counted tells the Reading of ctx the bytes of each row that scan reads.
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

// Exec runs a statement that must touch a row; ErrNotFound if it touched none, ErrUnconfirmed if it may have, and d is
// no transaction.
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

// AgentKey returns the key of an agent, by which its rows are stored. ErrNotFound if there is no such agent.
func AgentKey(ctx context.Context, d DB, org Org, agentID string) (int64, error) {
	key, err := One[int64](ctx, d, `SELECT key FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	return key, OrNotFound(err, "Agent with ID %s not found", agentID)
}
