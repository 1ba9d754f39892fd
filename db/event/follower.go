package event

import (
	"context"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

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

// Followers follow the events of agents, whichever server appends them. One batch at a time reads the newest positions
// of all followed agents, with a query for each organization.
type Followers struct {
	*Poller[agentKey, int64]

	db db.DB
}

// NewFollowers returns Followers that look for new events at the given interval while Run runs.
func NewFollowers(d db.DB, every time.Duration) *Followers {
	return &Followers{NewPoller(every, headsOf(d)), d}
}

// headsOfOrg selects the newest positions of agents of one organization. An agent that does not exist has no row.
const headsOfOrg = `
	SELECT a.id, coalesce(h.seq, 0)
	FROM agents a LEFT JOIN agent_heads h ON h.org = a.org AND h.agent_id = a.id
	WHERE a.org = $1 AND a.id = ANY ($2)`

func headsOf(d db.DB) ReadFunc[agentKey, int64] {
	known := map[agentKey]int64{} // of the read before
	return func(ctx context.Context, keys []agentKey) (map[agentKey]int64, error) {
		byOrg := map[db.Org][]string{}
		for _, k := range keys {
			byOrg[k.org] = append(byOrg[k.org], k.id)
		}
		heads, err := readHeads(ctx, d, byOrg)
		if db.Unavailable(err) && len(byOrg) > 1 {
			heads, err = readHeadsApart(ctx, d, byOrg, known)
		}
		if err == nil {
			known = heads
		}
		return heads, err
	}
}

// readHeadsApart reads the positions of each organization's agents alone. If its node of a cluster is away, they stay
// as known.
func readHeadsApart(ctx context.Context, d db.DB, byOrg map[db.Org][]string, known map[agentKey]int64) (
	map[agentKey]int64, error) {
	all, answered := map[agentKey]int64{}, false
	var err error
	for org, ids := range byOrg {
		heads, failed := readHeads(ctx, d, map[db.Org][]string{org: ids})
		if failed != nil {
			err = failed
			for _, id := range ids {
				all[agentKey{org, id}] = known[agentKey{org, id}]
			}
			continue
		}
		answered = true
		maps.Copy(all, heads)
	}
	if answered {
		return all, nil
	}
	return nil, err
}

func readHeads(ctx context.Context, d db.DB, byOrg map[db.Org][]string) (map[agentKey]int64, error) {
	heads := map[agentKey]int64{}
	var batch pgx.Batch
	for org, ids := range byOrg {
		batch.Queue(headsOfOrg, org, ids).Query(func(rows pgx.Rows) error {
			var id string
			var seq int64
			_, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
				heads[agentKey{org, id}] = seq
				return nil
			})
			return err
		})
	}
	return heads, db.Error(d.SendBatch(ctx, &batch).Close())
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
