package event

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/loci-memory/loci/db"
)

// Limits of one read of a follower: how many events it returns, how many positions it searches for them, and its time.
const (
	followLimit     = 32
	followPositions = 10_000
	followTimeout   = 10 * time.Second
)

// agentKey identifies an agent of an organization.
type agentKey struct {
	org db.Org
	id  string
}

// Followers follow the events of agents, whichever server appends them. One query at a time reads the newest positions
// of all followed agents.
type Followers struct {
	*Poller[agentKey, int64]

	db db.DB
}

// NewFollowers returns Followers that look for new events at the given interval while Run runs.
func NewFollowers(d db.DB, every time.Duration) *Followers {
	return &Followers{NewPoller(every, headsOf(d)), d}
}

func headsOf(d db.DB) ReadFunc[agentKey, int64] {
	return func(ctx context.Context, keys []agentKey) (map[agentKey]int64, error) {
		orgs, ids := make([]int32, len(keys)), make([]string, len(keys))
		for i, k := range keys {
			orgs[i], ids[i] = int32(k.org), k.id
		}
		type head struct {
			Org db.Org `db:"org"`
			ID  string `db:"id"`
			Seq *int64 `db:"seq"` // nil if the agent does not exist
		}
		// The inner SELECTs hide the number of agents from Postgres, which would otherwise make a new plan for each
		// execution.
		list, err := db.All[head](ctx, d, `
			SELECT followed.org, followed.id, (
				SELECT coalesce(h.seq, 0)
				FROM agents a
				LEFT JOIN agent_heads h ON h.agent_id = a.id AND h.org = a.org
				WHERE a.org = followed.org AND a.id = followed.id
			) AS seq
			FROM unnest((SELECT $1::integer[]), (SELECT $2::text[])) AS followed (org, id)`, orgs, ids)
		heads := make(map[agentKey]int64, len(list))
		for _, h := range list {
			if h.Seq != nil {
				heads[agentKey{h.Org, h.ID}] = *h.Seq
			}
		}
		return heads, err
	}
}

// Follower reads the events of one agent. It is for one goroutine.
type Follower struct {
	*Subscription[agentKey, int64]

	db           db.DB
	types        []Type
	cursor, head int64 // position of the last event read, and of the newest event
}

// Follow returns a follower of an agent's events after a position, beginning with those that exist already. If types is
// not empty, it reads only these types. The caller closes the follower. ErrNotFound if the agent does not exist;
// ErrInvalid if a type or the position is not valid; ErrTooMany if the organization has MaxSubscriptions followers.
func (f *Followers) Follow(
	ctx context.Context, org db.Org, agentID string, after int64, types []Type,
) (*Follower, error) {
	if err := (Query{After: after, Types: types}).check(); err != nil {
		return nil, err
	}
	head, err := Head(ctx, f.db, org, agentID)
	if err != nil {
		return nil, err
	}
	s, err := f.Subscribe(org, agentKey{org, agentID}, head)
	if err != nil {
		return nil, err
	}
	return &Follower{Subscription: s, db: f.db, types: types, cursor: after}, nil
}

// Next returns the next events, oldest first, as soon as there are any. After idle without an event it returns none. It
// keeps no events in memory between calls. io.EOF if no more events can follow, because the agent was deleted or Run
// ended.
func (f *Follower) Next(ctx context.Context, idle time.Duration) ([]Event, error) {
	quiet := time.NewTimer(idle)
	defer quiet.Stop()
	for {
		events, err := f.read(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if f.cursor < f.head {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-quiet.C:
			return nil, nil
		case head, open := <-f.Values:
			if !open {
				return nil, io.EOF
			}
			f.head = head
		}
	}
}

// read returns the events at the next positions and moves the cursor past them. It stops at the newest position that it
// knows; no event can appear below that position later.
func (f *Follower) read(ctx context.Context) ([]Event, error) {
	select {
	case head, open := <-f.Values:
		if !open {
			return nil, io.EOF
		}
		f.head = head
	default:
	}
	if f.cursor >= f.head {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	to := min(f.head, f.cursor+followPositions)
	events, err := List(ctx, f.db, f.key.org, f.key.id, Query{After: f.cursor, To: to, Types: f.types, Limit: followLimit})
	if errors.Is(err, db.ErrNotFound) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	f.cursor = to
	if len(events) == followLimit {
		f.cursor = events[len(events)-1].Seq
	}
	return events, nil
}
