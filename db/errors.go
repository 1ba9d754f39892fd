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
)

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

// ErrUnconfirmed means that the database did not say whether it stored a change. It may have.
var ErrUnconfirmed = errors.New("the database did not confirm a change")

// unconfirmed adds ErrUnconfirmed to an error of a statement that may have been carried out, and returns any other
// error unchanged. Postgres says so itself if it was not.
func unconfirmed(err error) error {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case err == nil, connecting, pgconn.SafeToRetry(err), errors.Is(err, pgx.ErrTxCommitRollback),
		errors.Is(err, pgx.ErrNoRows), answered && strings.EqualFold(pg.Severity, "ERROR"):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}

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

// Conflict returns an error of the kind ErrConflict with the given sentence.
func Conflict(format string, args ...any) error {
	return &caused{ErrConflict, fmt.Sprintf(format, args...)}
}

// Invalid returns an error of the kind ErrInvalid with the given sentence.
func Invalid(format string, args ...any) error {
	return &caused{ErrInvalid, fmt.Sprintf(format, args...)}
}

// OrNotFound returns an ErrNotFound with the given sentence for an ErrNotFound, and any other error unchanged.
func OrNotFound(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return NotFound(format, args...)
	}
	return err
}

// Error adds ErrNotFound, ErrConflict, ErrInvalid or ErrUnreachable to an error of Postgres that means one of them,
// returns a *QuotaError for one of a quota, and any other error unchanged.
func Error(err error) error {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case answered && pg.Code == quotaState:
		if exceeded, ok := QuotaExceeded(err); ok {
			return exceeded
		}
		return err
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

// Unavailable reports whether an error says that the database cannot serve now, whatever is asked: it is away, stops,
// starts, is suspended, has no resources, cannot open its own files, lacks a part of Loci's schema, or lets another
// session hold a lock too long. The same statement may succeed later.
func Unavailable(err error) bool {
	if TurnedAway(err) || LacksSchema(err) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "57P04", "57P05": // shut down, crashed, starting, dropped, idle
			return true
		case "25P03", "25P04": // a transaction was idle, or took, longer than the database allows
			return true
		case "55P03", "57014": // a lock or a statement took longer than the database allows
			return true
		}
		return IsFull(err) || FilesChanged(err) || strings.HasPrefix(pg.Code, "08") || // no connection
			strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "58") // no resources, a fault of its system
	}
	if errors.Is(err, context.Canceled) { // who asked no longer waits
		return false
	}
	return Away(err) || errors.Is(err, context.DeadlineExceeded)
}

// Away reports whether an error says that the database cannot be reached. That a caller's own time ended says nothing
// of the database, unless it ended while a connection was made.
func Away(err error) bool {
	_, unreachable := errors.AsType[*pgconn.ConnectError](err)
	return unreachable || IsFull(err) || errors.Is(err, ErrUnreachable) || pgconn.SafeToRetry(err)
}

// TurnedAway reports whether an error says that Postgres let the server in no more: its role, its password, its
// right to connect, or the name of its database is not what it was.
func TurnedAway(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return connecting && ok && (strings.HasPrefix(pg.Code, "28") || strings.HasPrefix(pg.Code, "3D") ||
		pg.Code == "42501")
}

// IsLocked reports whether an error says that another session held a lock for longer than the statement may wait.
func IsLocked(err error) bool { return hasCode(err, "55P03") }

// Deadlocked reports whether an error says that Postgres broke a transaction off to let another one go on. The same
// transaction may succeed when it is tried again.
func Deadlocked(err error) bool { return hasCode(err, "40P01") || hasCode(err, "40001") }

// TooManyConnections reports whether an error says that Postgres takes no more connections.
func TooManyConnections(err error) bool { return hasCode(err, "53300") }

func hasCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// FilesChanged reports whether an error says that Postgres cannot use its own files, as when its package was upgraded
// while it runs: libraries on disk are not those of the program that runs.
func FilesChanged(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && filesChanged(pg)
}

func filesChanged(pg *pgconn.PgError) bool {
	return pg.Code == "58P01" || pg.Routine == "internal_load_library" || pg.Routine == "incompatible_module_error"
}

// keepConnection returns a handler that reports whether a connection is used again after an error: not if the database
// behind it stops, was made read-only or cannot use its files, for a new connection may find another. changed, which
// may be nil, is called in the last case. A connection knows the numbers of types as they were when it was made:
// rebuilt is called if these may be others now.
func keepConnection(changed, rebuilt func()) pgconn.PgErrorHandler {
	return func(_ *pgconn.PgConn, pg *pgconn.PgError) bool {
		lost := filesChanged(pg)
		if lost && changed != nil {
			changed()
		}
		lacks := lacksSchema(pg)
		if lacks {
			rebuilt()
		}
		return !lost && !lacks && !strings.EqualFold(pg.Severity, "FATAL") && pg.Code != "25006" && pg.Code != "58000" &&
			!strings.HasPrefix(pg.Code, "57P0")
	}
}

// broken reports whether a connection ended under a statement.
func broken(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Constraint returns the name of the constraint that an error of Postgres is about; empty if there is none.
func Constraint(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	return pg.ConstraintName
}
