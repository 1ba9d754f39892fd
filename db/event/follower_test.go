package event_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/event"
)

// patience is the longest wait of a test; reaching it is a failure.
const patience = time.Minute

// followers follow the agents of an organization.
type followers struct {
	*event.Followers
	org db.Org
}

// newFollowers runs followers until the test ends or stop is called.
func newFollowers(t *testing.T, pool database) (all followers, stop func()) {
	t.Helper()
	all = followers{event.NewFollowers(pool, time.Millisecond), pool.org}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { all.Run(ctx, func(err error) { t.Errorf("look: %v", err) }) })
	stop = func() { cancel(); keeping.Wait() }
	t.Cleanup(stop)
	return all, stop
}

func follow(t *testing.T, followers followers, agent string, after int64, types ...event.Type) *event.Follower {
	t.Helper()
	follower, err := followers.Follow(t.Context(), followers.org, agent, after, types)
	if err != nil {
		t.Fatalf("follow %s after %d: %v", agent, after, err)
	}
	return follower
}

// next returns the positions of a follower's next n events.
func next(t *testing.T, follower *event.Follower, n int) (got []int64) {
	t.Helper()
	for len(got) < n {
		events, err := follower.Next(t.Context(), patience)
		if err != nil || len(events) == 0 {
			t.Fatalf("after %v: got %v, %v", got, events, err)
		}
		got = append(got, seqs(events)...)
	}
	return got
}

func TestAFollowerGoesOnWithWhatIsAppended(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	followers, _ := newFollowers(t, pool)
	agent, other := newHistory(t, pool, 100), newHistory(t, pool, 1)
	whole, late, messages := follow(
		t,
		followers,
		agent,
		0,
	), follow(
		t,
		followers,
		agent,
		98,
	), follow(
		t,
		followers,
		agent,
		85,
		event.MessageAppended,
	)
	if diff := cmp.Diff(to(1, 100), next(t, whole, 100)); diff != "" {
		t.Errorf("what was there (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(to(99, 100), next(t, late, 2)); diff != "" {
		t.Errorf("what was there after 98 (-want +got):\n%s", diff)
	}
	if got, err := whole.Next(t.Context(), time.Millisecond); err != nil || len(got) != 0 {
		t.Errorf("while nothing happens: got %v, %v", got, err)
	}
	for seq := int64(101); seq <= 103; seq++ {
		write(
			t,
			pool,
			event.Event{AgentID: other, Type: event.AgentUpdated},
			event.Event{AgentID: agent, Type: event.MessageAppended},
		)
		for _, follower := range []*event.Follower{whole, late} {
			if diff := cmp.Diff(to(seq, seq), next(t, follower, 1)); diff != "" {
				t.Errorf("what happens (-want +got):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff([]int64{90, 100, 101, 102, 103}, next(t, messages, 5)); diff != "" {
		t.Errorf("messages only (-want +got):\n%s", diff)
	}
}

// A rare type among very many events is found, in several reads.
func TestAFollowerFindsWhatIsRare(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	followers, _ := newFollowers(t, pool)
	agent := newHistory(t, pool, 10_500)
	follower := follow(t, followers, agent, 0, event.FileClosed)
	write(t, pool, event.Event{AgentID: agent, Type: event.FileClosed}, event.Event{AgentID: agent, Type: event.FileUsed})
	if got := next(t, follower, 1); got[0] != 10_501 {
		t.Errorf("got %d, want 10501", got[0])
	}
}

func TestAFollowerEndsWithItsAgentAndTheServer(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	followers, stop := newFollowers(t, pool)
	deleted, stays := newHistory(t, pool, 1), newHistory(t, pool, 5)
	one, two := follow(t, followers, deleted, 1), follow(t, followers, stays, 5)
	behind, forgotten := follow(t, followers, stays, 0), follow(t, followers, stays, 5)
	ended := func(what string, follower *event.Follower) {
		t.Helper()
		if got, err := follower.Next(t.Context(), patience); !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, %v, want the end", what, got, err)
		}
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM agents WHERE org = $1 AND id = $2`, pool.org, deleted); err != nil {
		t.Fatal(err)
	}
	ended("a deleted agent", one)
	if _, err := followers.Follow(t.Context(), followers.org, deleted, 0, nil); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("to follow a deleted agent: got %v, want ErrNotFound", err)
	}
	forgotten.Close()
	forgotten.Close()
	ended("a follower that was let go", forgotten)
	if got := followers.Count(); got != 2 {
		t.Errorf("%d followers are left, want 2", got)
	}
	canceled, leave := context.WithCancel(t.Context())
	leave()
	if _, err := two.Next(canceled, patience); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that is gone: got %v", err)
	}
	stop()
	ended("the server stops", two)
	ended("the server stops, with events to read", behind)
	ended("the server has stopped", follow(t, followers, stays, 0))
}

func TestFollowRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	followers := followers{event.NewFollowers(pool, time.Hour), pool.org}
	agent := newHistory(t, pool, 1)
	if _, err := followers.Follow(t.Context(), followers.org, agent, -1, nil); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("after no position: got %v, want ErrInvalid", err)
	}
	_, err := followers.Follow(t.Context(), followers.org, agent, 0, []event.Type{"x"})
	if !errors.Is(err, db.ErrInvalid) {
		t.Errorf("of no type: got %v, want ErrInvalid", err)
	}
}

// crowd is a set of writers, and what their committed transactions wrote. They all write to one agent, and some to
// others, too.
type crowd struct {
	*testing.T
	pool   database // for the writers
	agents []string
	done   chan struct{} // closed when all have written

	mu      sync.Mutex
	written map[string]map[string]bool // agent → references of its events
	changed chan struct{}              // closed when more is written
}

// change returns a channel that is closed when more is written, or everything is.
func (c *crowd) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// wrote closes the channel of change and makes a new one.
func (c *crowd) wrote() {
	close(c.changed)
	c.changed = make(chan struct{})
}

var errAborted = errors.New("aborted")

// turns passes time in a transaction: it calls the database a random number of times, and lets others run in between.
func turns(ctx context.Context, tx pgx.Tx, dice *rand.Rand) error {
	for range dice.IntN(4) {
		runtime.Gosched()
		if _, err := tx.Exec(ctx, `SELECT 1`); err != nil {
			return err
		}
	}
	return nil
}

// writer appends events in transactions. Every fourth transaction is aborted at a random moment. Some writers wait for
// each other before they append.
func (c *crowd) writer(who int) {
	dice := rand.New(rand.NewPCG(7, uint64(who)))
	for n := range 12 {
		events := make([]event.Event, 1+dice.IntN(4))
		for i := range events {
			agent := 0
			if dice.IntN(2) == 0 {
				agent = dice.IntN(len(c.agents))
			}
			events[i] = event.Event{AgentID: c.agents[agent], Type: event.FileUsed, RefID: fmt.Sprint(who, "-", n, "-", i)}
		}
		err := db.Tx(c.Context(), c.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(c.Context(), `SELECT pg_advisory_xact_lock($1)`, dice.IntN(8)); err != nil {
				return err
			}
			if err := turns(c.Context(), tx, dice); err != nil {
				return err
			}
			if _, err := event.Append(c.Context(), tx, c.pool.org, events...); err != nil {
				return err
			}
			if err := turns(c.Context(), tx, dice); err != nil {
				return err
			}
			if dice.IntN(4) == 0 {
				return errAborted
			}
			return nil
		})
		if err != nil && !errors.Is(err, errAborted) {
			c.Errorf("writer %d: %v", who, err)
		}
		if err == nil {
			c.note(events)
		}
	}
}

func (c *crowd) note(events []event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		if c.written[e.AgentID] == nil {
			c.written[e.AgentID] = map[string]bool{}
		}
		c.written[e.AgentID][e.RefID] = true
	}
	c.wrote()
}

// end tells the readers to read to the end and stop.
func (c *crowd) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.done)
	c.wrote()
}

// over reports whether everything is written and a reader has reached its end.
func (c *crowd) over(agent string, cursor int64) bool {
	select {
	case <-c.done:
	default:
		return false
	}
	head, err := event.Head(c.Context(), c.pool, c.pool.org, agent)
	if err != nil {
		c.Errorf("read the head: %v", err)
	}
	return err != nil || cursor >= head
}

// pages reads an agent's events page by page. It remembers only the last position.
func (c *crowd) pages(d db.DB, agent string, dice *rand.Rand) (read []event.Event) {
	var last int64
	for !c.over(agent, last) {
		changed := c.change()
		page, err := event.List(c.Context(), d, c.pool.org, agent, event.Query{After: last, Limit: 1 + dice.IntN(40)})
		if err != nil {
			c.Errorf("read a page: %v", err)
			return read
		}
		read = append(read, page...)
		if len(page) > 0 {
			last = page[len(page)-1].Seq
		} else if !c.over(agent, last) {
			<-changed
		}
	}
	return read
}

// consumes is one of several readers that share a consumer. The events that it commits are its own.
func (c *crowd) consumes(d db.DB, agent, name string, dice *rand.Rand) (read []event.Event) {
	for {
		changed := c.change()
		cursor, err := event.Cursor(c.Context(), d, c.pool.org, agent, name)
		if err != nil {
			c.Errorf("read the cursor: %v", err)
			return read
		}
		if c.over(agent, cursor) {
			return read
		}
		page, err := event.List(c.Context(), d, c.pool.org, agent, event.Query{After: cursor, Limit: 1 + dice.IntN(20)})
		if err != nil {
			c.Errorf("read from the cursor: %v", err)
			return read
		}
		if len(page) == 0 {
			<-changed
			continue
		}
		_, err = event.CommitCursor(
			c.Context(),
			d,
			c.pool.org,
			event.Commit{AgentID: agent, Name: name, Seq: page[len(page)-1].Seq, Expected: &cursor},
		)
		if err == nil {
			read = append(read, page...)
		} else if !errors.Is(err, db.ErrConflict) {
			c.Errorf("commit: %v", err)
			return read
		}
	}
}

// follows reads with a follower, which it closes and reopens again and again.
func (c *crowd) follows(followers followers, agent string, dice *rand.Rand) (read []event.Event) {
	var last int64
	for {
		follower, err := followers.Follow(c.Context(), followers.org, agent, last, nil)
		if err != nil {
			c.Errorf("follow: %v", err)
			return read
		}
		for range 1 + dice.IntN(6) {
			events, err := follower.Next(c.Context(), time.Millisecond)
			if err != nil {
				c.Errorf("next: %v", err)
				return read
			}
			read = append(read, events...)
			if len(events) > 0 {
				last = events[len(events)-1].Seq
			}
		}
		follower.Close()
		if c.over(agent, last) {
			return read
		}
	}
}

// check compares what a reader read with what was written: every event once, in order, without a gap.
func (c *crowd) check(reader, agent string, read []event.Event) {
	c.Helper()
	want := c.written[agent]
	if len(read) == 0 || len(read) != len(want) || !slices.Equal(seqs(read), to(1, int64(len(read)))) {
		c.Errorf(
			"%s of %s read %d events, want the %d that were written, at %v",
			reader,
			agent,
			len(read),
			len(want),
			seqs(read),
		)
	}
	for _, e := range read {
		if !want[e.RefID] {
			c.Errorf("%s of %s read %+v, which nobody wrote", reader, agent, e)
		}
	}
}

// Many writers append to one agent and to others, with delays and aborts, while readers of all kinds read. Each reader
// sees every event once, in order and without a gap, even if it stops and starts again.
func TestReadersMissNothingAndSeeNothingTwice(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	config := pool.Config()
	config.MaxConns = int32(scale.Of(12, 32)) //nolint:gosec // it is small
	writers, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writers.Close)
	followers, _ := newFollowers(t, pool)
	c := &crowd{T: t, pool: database{writers, pool.org}, done: make(chan struct{}), changed: make(chan struct{}),
		written: map[string]map[string]bool{}}
	for range scale.Of(3, 6) {
		c.agents = append(c.agents, newAgent(t, pool))
	}
	var writing, reading sync.WaitGroup
	for who := range int(config.MaxConns) {
		writing.Go(func() { c.writer(who) })
	}
	read := map[string][]event.Event{}
	var mu sync.Mutex
	reader := func(kind, agent string, seed uint64, all func(*rand.Rand) []event.Event) {
		reading.Go(func() {
			events := all(rand.New(rand.NewPCG(8, seed)))
			if !slices.IsSorted(seqs(events)) {
				t.Errorf("%s of %s read %v, which is out of order", kind, agent, seqs(events))
			}
			mu.Lock()
			defer mu.Unlock()
			read[kind+" "+agent] = append(read[kind+" "+agent], events...)
		})
	}
	for i, agent := range c.agents {
		seed := uint64(i)
		reader("pages", agent, seed, func(dice *rand.Rand) []event.Event { return c.pages(pool, agent, dice) })
		reader("follower", agent, seed+10, func(dice *rand.Rand) []event.Event { return c.follows(followers, agent, dice) })
		for k := range uint64(3) {
			reader(
				"consumer",
				agent,
				seed+20*(k+1),
				func(dice *rand.Rand) []event.Event { return c.consumes(pool, agent, "shared", dice) },
			)
		}
	}
	writing.Wait()
	c.end()
	reading.Wait()
	for _, agent := range c.agents {
		c.check("pages", agent, read["pages "+agent])
		c.check("follower", agent, read["follower "+agent])
		shared := read["consumer "+agent] // each of three has a part, in order; together they have everything
		slices.SortStableFunc(shared, func(a, b event.Event) int { return int(a.Seq - b.Seq) })
		c.check("consumer", agent, shared)
	}
}

// nodesAway is a cluster in which nodes may be away.
type nodesAway struct {
	db.DB
	away sync.Map // organizations with their agents there
}

func (d *nodesAway) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if _, away := d.away.Load(q.Arguments[0]); away {
			return noResults{}
		}
	}
	return d.DB.SendBatch(ctx, b)
}

type noResults struct{ pgx.BatchResults }

func (noResults) Close() error { return &pgconn.PgError{Code: "08006"} }

// While the node of an organization is away, its followers wait, and those of others go on. A read that no node answers
// has failed.
func TestFollowersOutliveANodeThatIsAway(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	others := database{pool.Pool, dbtest.NewOrg(t, pool)}
	cluster := &nodesAway{DB: pool}
	all := event.NewFollowers(cluster, time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	failed := make(chan error, 1)
	running.Go(func() {
		all.Run(ctx, func(err error) {
			select {
			case failed <- err:
			default:
			}
		})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	agent, other := newHistory(t, pool, 2), newHistory(t, others, 2)
	waits, goesOn := follow(t, followers{all, pool.org}, agent, 0), follow(t, followers{all, others.org}, other, 0)
	next(t, waits, 2)
	next(t, goesOn, 2)
	cluster.away.Store(pool.org, true)
	for seq := int64(3); seq <= 5; seq++ {
		if seq == 5 { // the read of event 4 began without the node, and so do those after it
			write(t, pool, event.Event{AgentID: agent, Type: event.AgentUpdated})
		}
		write(t, others, event.Event{AgentID: other, Type: event.AgentUpdated})
		if diff := cmp.Diff(to(seq, seq), next(t, goesOn, 1)); diff != "" {
			t.Errorf("what happens to another organization's agent (-want +got):\n%s", diff)
		}
	}
	if got, err := waits.Next(t.Context(), time.Nanosecond); err != nil || len(got) != 0 {
		t.Errorf("while the node is away: got %v, %v, want no events and no end", got, err)
	}
	if len(failed) > 0 {
		t.Errorf("while one node of two is away, a read failed: %v", <-failed)
	}
	cluster.away.Store(others.org, true)
	select {
	case err := <-failed:
		if !db.Unavailable(err) {
			t.Errorf("while both nodes are away: got %v, want the error of a node", err)
		}
	case <-time.After(patience):
		t.Error("while both nodes are away, no read failed")
	}
	cluster.away.Clear()
	if diff := cmp.Diff(to(3, 3), next(t, waits, 1)); diff != "" {
		t.Errorf("once the node is back (-want +got):\n%s", diff)
	}
}
