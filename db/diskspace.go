package db

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsFull reports whether an error says that nothing can be stored, because a disk is full or broken, or the database is
// read-only.
func IsFull(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// insufficient_resources, disk_full, io_error, read_only_sql_transaction
		return slices.Contains([]string{"53000", "53100", "58030", "25006"}, pg.Code)
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, ErrReadOnly)
}

// ErrReadOnly is returned by CheckWritable if the database is read-only.
var ErrReadOnly = errors.New("the database is read-only")

// IsReadOnly reports whether an error says that the database is read-only.
func IsReadOnly(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "25006" || errors.Is(err, ErrReadOnly)
}

// CheckWritable returns ErrReadOnly if the database accepts no changes.
func CheckWritable(ctx context.Context, d DB) error {
	readOnly, err := One[string](ctx, d, `SHOW transaction_read_only`)
	if err == nil && readOnly == "on" {
		return ErrReadOnly
	}
	return err
}

// UnlessFull returns the error of a write that a read can do without. It returns nil if the error says that nothing can
// be stored.
func UnlessFull(err error) error {
	if IsFull(err) {
		return nil
	}
	return err
}

// CheckRoom stores about 1 MiB and rolls it back. It returns the error if the database cannot store that.
func CheckRoom(ctx context.Context, d DB) error {
	tx, err := d.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // nothing is kept
	_, err = tx.Exec(ctx, `
		INSERT INTO room_checks (text)
		SELECT string_agg(md5(row::text || part::text), '')
		FROM generate_series(1, 1000) AS row, generate_series(1, 32) AS part
		GROUP BY row`)
	return err
}
