package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"github.com/jackc/pgerrcode"
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
	// ErrTooLong: a text is longer than its place allows. It is an ErrInvalid.
	ErrTooLong = fmt.Errorf("too long: %w", ErrInvalid)
	// ErrTooMany: the organization has reached its limit of these at once.
	ErrTooMany = errors.New("too many")
	// ErrBusy: other requests delay this one; the same request may succeed in some seconds.
	ErrBusy = errors.New("busy")
)

// ErrUnreachable says that a connection to the database could not be made, or broke.
var ErrUnreachable = errors.New("the database cannot be reached")

// ErrUnconfirmed says that the database did not confirm a change. The change may be stored.
var ErrUnconfirmed = errors.New("the database did not confirm a change")

// unconfirmed adds ErrUnconfirmed to the error of a statement that Postgres may have carried out. It returns any other
// error unchanged. If Postgres itself reports an error, the statement was not carried out.
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

// caused is an error with a sentence for the caller as its text, and one of the errors above as its kind.
type caused struct {
	kind error
	text string
}

func (c *caused) Error() string { return c.text }
func (c *caused) Unwrap() error { return c.kind }

// NotFound returns an ErrNotFound with the given sentence.
func NotFound(format string, args ...any) error {
	return &caused{ErrNotFound, fmt.Sprintf(format, args...)}
}

// Busy returns an ErrBusy with the given sentence.
func Busy(format string, args ...any) error { return &caused{ErrBusy, fmt.Sprintf(format, args...)} }

// TooMany returns an ErrTooMany with the given sentence.
func TooMany(format string, args ...any) error {
	return &caused{ErrTooMany, fmt.Sprintf(format, args...)}
}

// Conflict returns an ErrConflict with the given sentence.
func Conflict(format string, args ...any) error {
	return &caused{ErrConflict, fmt.Sprintf(format, args...)}
}

// Invalid returns an ErrInvalid with the given sentence.
func Invalid(format string, args ...any) error {
	return &caused{ErrInvalid, fmt.Sprintf(format, args...)}
}

// TooLong returns an ErrTooLong with the given sentence.
func TooLong(format string, args ...any) error {
	return &caused{ErrTooLong, fmt.Sprintf(format, args...)}
}

// OrNotFound gives an ErrNotFound the given sentence, and returns any other error unchanged.
func OrNotFound(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return NotFound(format, args...)
	}
	return err
}

// Error classifies an error of Postgres. It adds ErrNotFound, ErrConflict, ErrInvalid or ErrUnreachable where one
// applies, and returns any other error unchanged.
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

// Unavailable reports whether an error says that the database cannot serve any request now. Causes: it is away,
// stopping, starting or suspended; it has no resources; it cannot open its own files; it lacks a part of Loci's schema;
// or another session holds a lock too long. The same statement may succeed later.
func Unavailable(err error) bool {
	if TurnedAway(err) || LacksSchema(err) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "57P04", "57P05": // shut down, crashed, starting, dropped, idle
			return true
		case "25P03", "25P04": // a transaction was idle too long, or took too long
			return true
		case "55P03", "57014": // a lock or a statement took too long
			return true
		case "XX000": // Citus says so on a coordinator that is killed
			if strings.HasPrefix(pg.Message, "postmaster was shut down") {
				return true
			}
		}
		return IsFull(err) || FilesChanged(err) || strings.HasPrefix(pg.Code, "08") || // no connection
			strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "58") // no resources, or a fault of the system
	}
	if errors.Is(err, context.Canceled) { // the caller no longer waits
		return false
	}
	return Away(err) || errors.Is(err, context.DeadlineExceeded)
}

// Away reports whether an error says that the database cannot be reached. A caller's own deadline says nothing about
// the database, unless it passed while a connection was being made.
func Away(err error) bool {
	_, unreachable := errors.AsType[*pgconn.ConnectError](err)
	return unreachable || IsFull(err) || errors.Is(err, ErrUnreachable) || pgconn.SafeToRetry(err)
}

// TurnedAway reports whether an error says that Postgres no longer lets the server in: the role, its password, its
// right to connect, or the name of the database has changed.
func TurnedAway(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return connecting && ok && (strings.HasPrefix(pg.Code, "28") || strings.HasPrefix(pg.Code, "3D") ||
		pg.Code == "42501")
}

// IsLocked reports whether an error says that another session held a lock longer than the statement may wait.
func IsLocked(err error) bool { return hasCode(err, "55P03") }

// Deadlocked reports whether an error says that Postgres aborted a transaction so that another could go on. The same
// transaction may succeed if it is tried again.
func Deadlocked(err error) bool { return hasCode(err, "40P01") || hasCode(err, "40001") }

// TooManyConnections reports whether an error says that Postgres accepts no more connections.
func TooManyConnections(err error) bool { return hasCode(err, "53300") }

func hasCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// FilesChanged reports whether an error says that Postgres cannot use its own files. This happens after its package was
// upgraded under it: the libraries on disk no longer match the running program.
func FilesChanged(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && filesChanged(pg)
}

func filesChanged(pg *pgconn.PgError) bool {
	return pg.Code == "58P01" || pg.Routine == "internal_load_library" || pg.Routine == "incompatible_module_error"
}

// keepConnection returns a handler that decides after an error whether a connection is used again. It is not if the
// database behind it is stopping, was made read-only, or cannot use its files, because a new connection may find
// another database. The handler calls changed, which may be nil, if Postgres cannot use its files. It calls rebuilt if
// a part of the schema is missing, because a connection knows the numbers of types from when it was made, and these may
// have changed.
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

// broken reports whether a connection broke during a statement.
func broken(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Constraint returns the name of the constraint that an error of Postgres names, or "". A cluster names it in the
// message alone.
func Constraint(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	name := pg.ConstraintName
	if found := namedConstraint.FindStringSubmatch(pg.Message); name == "" && found != nil &&
		pgerrcode.IsIntegrityConstraintViolation(pg.Code) {
		name = found[1]
	}
	return shardID.ReplaceAllString(name, "")
}

// namedConstraint matches the name of a constraint in a message.
var namedConstraint = regexp.MustCompile(`constraint "([^"]+)"`)

// shardID is what a cluster adds to the name of a constraint in a part of a table.
var shardID = regexp.MustCompile(`_[0-9]{6,}$`)
