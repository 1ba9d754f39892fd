package event

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// How many events a slice has.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Query selects a slice of an agent's events by position, which is their Seq. A bound of 0 does not bound. If more than
// Limit events match, the slice has the events next to the lower bound. With Descending, or with Before and no lower
// bound, it has those next to the upper bound.
type Query struct {
	From, To   int64  // first and last position of the slice
	After      int64  // position before the slice
	Before     int64  // position behind the slice
	Types      []Type // empty: all types
	Limit      int    // number of events, at most MaxLimit; 0 means DefaultLimit
	Descending bool   // newest first
}

// List returns a slice of an agent's events, never nil. Positions have no gaps, and no event appears later below a
// position that was read. A reader that continues after the last Seq it received therefore misses no event and sees
// none twice. ErrNotFound if the agent does not exist; ErrInvalid if the bounds contradict each other, or the limit or
// a type is not valid.
func List(ctx context.Context, d db.DB, org db.Org, agentID string, q Query) ([]Event, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	first, last := q.bounds()
	rewinds := q.Before > 0 && q.After == 0 && q.From == 0
	order, types := "ASC", ""
	if q.Descending || rewinds {
		order = "DESC"
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "first": first, "last": last,
		"limit": cmp.Or(q.Limit, DefaultLimit)}
	if len(q.Types) > 0 {
		types, args["types"] = " AND type = ANY (@types)", q.Types
	}
	events, err := db.All[Event](ctx, d, `
		SELECT agent_id, seq, type, ref_id, at FROM events
		WHERE org = @org AND agent_id = @agent AND seq BETWEEN @first AND @last`+types+`
		ORDER BY seq `+order+` LIMIT @limit`, args)
	if err == nil && len(events) == 0 {
		_, err = Head(ctx, d, org, agentID)
	}
	if rewinds && !q.Descending {
		slices.Reverse(events)
	}
	return events, err
}

// Head returns the position of an agent's newest event, or 0 if there are no events. ErrNotFound if the agent does not
// exist.
func Head(ctx context.Context, d db.DB, org db.Org, agentID string) (int64, error) {
	seq, err := db.One[int64](ctx, d, `
		SELECT coalesce(h.seq, 0) FROM agents a LEFT JOIN agent_heads h ON h.agent_id = a.id AND h.org = a.org
		WHERE a.org = $1 AND a.id = $2`, org, agentID)
	return seq, db.OrNotFound(err, "Agent with ID %s not found", agentID)
}

func (q Query) check() error {
	type bound struct {
		name string
		at   int64
	}
	for _, b := range []bound{{"from", q.From}, {"to", q.To}, {"before", q.Before}, {"after", q.After}} {
		if b.at < 0 {
			return db.Invalid("%s is %d; positions of events begin at 1", b.name, b.at)
		}
	}
	for _, low := range []bound{{"from", q.From}, {"after", q.After}} {
		for _, high := range []bound{{"to", q.To}, {"before", q.Before}} {
			if high.at > 0 && low.at > high.at {
				return db.Invalid("%s is %d, which is beyond %s, which is %d", low.name, low.at, high.name, high.at)
			}
		}
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return db.Invalid("limit is %d; it must be from 1 to %d", q.Limit, MaxLimit)
	}
	for _, t := range q.Types {
		if !slices.Contains(Types, t) {
			known := strings.ReplaceAll(strings.Trim(fmt.Sprint(Types), "[]"), " ", ", ")
			return db.Invalid("types: there is no type '%.100s'; the types are %s", t, known)
		}
	}
	return nil
}

// bounds returns the first and the last position of the slice.
func (q Query) bounds() (first, last int64) {
	first, last = max(q.From, min(q.After, math.MaxInt64-1)+1), math.MaxInt64
	if q.To > 0 {
		last = q.To
	}
	if q.Before > 0 {
		last = min(last, q.Before-1)
	}
	return first, last
}
