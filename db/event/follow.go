package event

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// MaxFollowers is how many tails there may be at a time.
const MaxFollowers = 1000

// tailEvery is the time between two looks at the heads of agents that are followed, where NewFollowers is not told, and after one that failed.
const (
	tailEvery = 100 * time.Millisecond
	tailPause = time.Second
)

// Bounds of what a tail reads at a time: events that it hands out, positions that it looks through for them, and the time it takes.
const (
	tailEvents   = 32
	tailStretch  = 10_000
	tailPatience = 10 * time.Second
)

// Followers follow the events of agents as they are appended, by whatever server. One query in a while looks how far all followed agents have
// come, however many follow them, and none while nobody does.
type Followers struct {
	db    db.DB
	every time.Duration
	begin chan struct{} // tells that somebody follows

	mu     sync.Mutex
	tails  map[*Follower]struct{}
	closed bool
}

// NewFollowers returns tails on d that look so often; 0 is ten times a second. Keep must run.
func NewFollowers(d db.DB, every time.Duration) *Followers {
	if every == 0 {
		every = tailEvery
	}
	return &Followers{db: d, every: every, begin: make(chan struct{}, 1), tails: map[*Follower]struct{}{}}
}

// Follower is one reader of one agent's events. It is for one goroutine.
type Follower struct {
	db    db.DB
	org   db.Org
	agent string
	types []Type

	cursor, head int64 // events up to the one were read, up to the other there are some

	told  int64         // the latest head, by look
	heads chan int64    // it, until it is taken
	ended chan struct{} // closed when nothing follows
}

// Follow begins to follow an agent's events after a position, those that are there already included; types, if any, are the only ones that
// are read. The caller ends it with Forget. ErrNotFound if the agent is not there, ErrInvalid if there is no such type or position,
// ErrConflict if there are MaxFollowers.
func (t *Followers) Follow(ctx context.Context, org db.Org, agentID string, after int64, types []Type) (*Follower, error) {
	if err := (Query{After: after, Types: types}).check(); err != nil {
		return nil, err
	}
	head, err := Head(ctx, t.db, org, agentID)
	if err != nil {
		return nil, err
	}
	v := &Follower{db: t.db, org: org, agent: agentID, types: types, cursor: after, head: head, told: head,
		heads: make(chan int64, 1), ended: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		close(v.ended)
		return v, nil
	case len(t.tails) >= MaxFollowers:
		return nil, db.Conflict("%d readers follow events already, which is the most; page through the events instead", MaxFollowers)
	}
	t.tails[v] = struct{}{}
	select {
	case t.begin <- struct{}{}:
	default:
	}
	return v, nil
}

// Forget ends a tail.
func (t *Followers) Forget(v *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(v)
}

// Count is how many tails there are.
func (t *Followers) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tails)
}

// Next returns the next events, oldest first, as soon as there are some; none if there are none for so long. It reads them when it is
// called: a reader that takes its time holds nothing in memory. io.EOF when nothing follows: the agent was deleted, or the server stops.
func (v *Follower) Next(ctx context.Context, idle time.Duration) ([]Event, error) {
	quiet := time.NewTimer(idle)
	defer quiet.Stop()
	for {
		select {
		case <-v.ended:
			return nil, io.EOF
		default:
		}
		if v.cursor < v.head {
			if events, err := v.read(ctx); err != nil || len(events) > 0 {
				return events, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.ended:
		case v.head = <-v.heads:
		case <-quiet.C:
			return nil, nil
		}
	}
}

// read returns the events in the next stretch of positions, and moves on. The stretch ends at the head that was looked up before: no event
// up to there can come any more.
func (v *Follower) read(ctx context.Context) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, tailPatience)
	defer cancel()
	to := min(v.head, v.cursor+tailStretch)
	events, err := List(ctx, v.db, v.org, v.agent, Query{After: v.cursor, To: to, Types: v.types, Limit: tailEvents})
	if errors.Is(err, db.ErrNotFound) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	v.cursor = to
	if len(events) == tailEvents {
		v.cursor = events[len(events)-1].Seq
	}
	return events, nil
}

// Keep looks at how far the followed agents have come until ctx ends, and then ends all tails. A look that fails is made again after a
// pause; failed is told why.
func (t *Followers) Keep(ctx context.Context, failed func(error)) {
	defer t.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.begin:
		}
		for pause := t.every; t.Count() > 0 && sleep(ctx, pause); {
			pause = t.every
			if err := t.look(ctx); err != nil && ctx.Err() == nil {
				failed(err)
				pause = max(pause, tailPause)
			}
		}
	}
}

// sleep waits; it says no if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// followed are the agents that tails follow, each once.
func (t *Followers) followed() (orgs []int32, agents []string, tails map[string][]*Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tails = map[string][]*Follower{}
	for v := range t.tails {
		if tails[v.agent] == nil {
			orgs, agents = append(orgs, int32(v.org)), append(agents, v.agent)
		}
		tails[v.agent] = append(tails[v.agent], v)
	}
	return orgs, agents, tails
}

// look tells the tails how far their agents have come, and ends those whose agent is gone.
func (t *Followers) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tailPatience)
	defer cancel()
	orgs, agents, tails := t.followed()
	type head struct {
		AgentID string `db:"id"`
		Seq     int64  `db:"seq"`
	}
	heads, err := db.All[head](ctx, t.db, `
		SELECT a.id, coalesce(h.seq, 0) AS seq
		FROM unnest($1::integer[], $2::text[]) AS followed (org, id)
		JOIN agents a ON a.id = followed.id AND a.org = followed.org
		LEFT JOIN agent_heads h ON h.agent_id = a.id`, orgs, agents)
	if err != nil {
		return err
	}
	for _, h := range heads {
		for _, v := range tails[h.AgentID] {
			v.tell(h.Seq)
		}
		delete(tails, h.AgentID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, gone := range tails {
		for _, v := range gone {
			t.end(v)
		}
	}
	return nil
}

// tell passes on a head that is new; one that was not taken yet is out of date. Only look calls it.
func (v *Follower) tell(head int64) {
	if head == v.told {
		return
	}
	v.told = head
	select {
	case <-v.heads:
	default:
	}
	v.heads <- head
}

// end ends a tail, once. The caller holds the lock.
func (t *Followers) end(v *Follower) {
	if _, there := t.tails[v]; there {
		delete(t.tails, v)
		close(v.ended)
	}
}

func (t *Followers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for v := range t.tails {
		t.end(v)
	}
}
