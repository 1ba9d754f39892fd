package db

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// Validity is the time in which something stored holds: from ValidFrom on, and before ValidUntil. A nil bound does not
// bound.
type Validity struct {
	ValidFrom  *time.Time `db:"valid_from" json:"valid_from" doc:"When it begins to hold; null is always."`
	ValidUntil *time.Time `db:"valid_until" json:"valid_until" doc:"When it ends to hold; null is never."`
}

// Check returns *FieldError if the time would end before it begins.
func (v Validity) Check() error {
	if v.ValidFrom == nil || v.ValidUntil == nil || v.ValidUntil.After(*v.ValidFrom) {
		return nil
	}
	return &FieldError{"valid_until", "it would end at " + v.ValidUntil.UTC().Format(time.RFC3339Nano) +
		" (a date is the end of that day); it must be later than " +
		"valid_from, which is " + v.ValidFrom.UTC().Format(time.RFC3339Nano)}
}

// Bound is a new beginning or end of a Validity. A nil At removes it.
type Bound struct{ At *time.Time }

// Held selects stored things by the time in which they hold.
type Held struct {
	AsOf *time.Time // only what holds at this moment; nil means now
	All  bool       // also what has ended or has not begun
}

// Where returns a condition on the rows of an alias, beginning with AND, and adds its argument to args. It is empty if
// All is set.
func (h Held) Where(alias string, args pgx.StrictNamedArgs) string {
	if h.All {
		return ""
	}
	args["as_of"] = h.AsOf
	return ` AND (` + alias + `.valid_from IS NULL OR ` + alias + `.valid_from <= coalesce(@as_of::timestamptz, now()))
		AND (` + alias + `.valid_until IS NULL OR ` + alias + `.valid_until > coalesce(@as_of::timestamptz, now()))`
}

// Succession is something that ended, and what superseded it; both are ids.
type Succession struct{ Ended, By string }

// CheckChains returns *FieldError if a chain of successors is a loop.
func CheckChains(list []Succession) error {
	next, ends := map[string]string{}, map[string]bool{}
	for _, l := range list {
		next[l.Ended] = l.By
	}
	for _, l := range list {
		seen := map[string]bool{}
		for id, more := l.Ended, true; more && !ends[id]; id, more = next[id] {
			if seen[id] {
				return &FieldError{"superseded_by", "those that supersede " + Short(id) + " are a loop"}
			}
			seen[id] = true
		}
		for id := range seen {
			ends[id] = true
		}
	}
	return nil
}

// FieldError is an ErrInvalid about one field of a request.
type FieldError struct{ Field, Rule string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Rule }

// Unwrap returns ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }
