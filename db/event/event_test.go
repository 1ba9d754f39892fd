package event_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// database is the database that the package's tests share, with an organization of this test.
type database struct {
	*pgxpool.Pool
	org db.Org
}

func newDatabase(t *testing.T) database {
	t.Helper()
	pool, org := dbtest.Org(t)
	return database{pool, org}
}

func newAgent(t *testing.T, pool database) string {
	t.Helper()
	var id string
	err := pool.QueryRow(t.Context(), `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`,
		pool.org).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestEventsAreGaplessAndInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agents := []string{newAgent(t, pool), newAgent(t, pool), newAgent(t, pool)}
	aborted := errors.New("aborted")
	write := func(random *rand.Rand) {
		events := make([]event.Event, 1+random.IntN(5))
		for i := range events {
			events[i] = event.Event{AgentID: agents[random.IntN(len(agents))], Type: event.FileOpened, RefID: fmt.Sprint(i)}
		}
		err := db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			written, err := event.Append(t.Context(), tx, pool.org, events...)
			if err != nil {
				return err
			}
			for i, e := range written {
				if e.AgentID != events[i].AgentID || e.RefID != events[i].RefID {
					t.Errorf("event %d came back as %+v, want %+v", i, e, events[i])
				}
			}
			if random.IntN(4) == 0 {
				return aborted
			}
			return nil
		})
		if err != nil && !errors.Is(err, aborted) {
			t.Errorf("append: %v", err)
		}
	}
	var group sync.WaitGroup
	for writer := range 16 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(writer)))
			for range 20 {
				write(random)
			}
		})
	}
	group.Wait()
	for _, agent := range agents {
		seqs, err := db.All[int64](t.Context(), pool, `SELECT seq FROM events WHERE agent_id = $1 ORDER BY seq`, agent)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]int64, len(seqs))
		for i := range want {
			want[i] = int64(i + 1)
		}
		if diff := cmp.Diff(want, seqs); diff != "" || len(seqs) < 50 {
			t.Errorf("agent %s has %d events (-want +got):\n%s", agent, len(seqs), diff)
		}
		var backwards int
		if err := pool.QueryRow(t.Context(), `
			SELECT count(*) FROM events a JOIN events b ON b.agent_id = a.agent_id AND b.seq = a.seq + 1
			WHERE a.agent_id = $1 AND b.at < a.at`, agent).Scan(&backwards); err != nil || backwards > 0 {
			t.Errorf("%d events are earlier than the one before (%v)", backwards, err)
		}
	}
}

func TestAppendRefusesAgentsOfOthers(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agent := newAgent(t, pool)
	appendTo := func(org db.Org, agent string) error {
		return db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := event.Append(t.Context(), tx, org, event.Event{AgentID: agent, Type: event.AgentUpdated})
			return err
		})
	}
	if err := appendTo(pool.org, agent); err != nil {
		t.Errorf("own agent: %v", err)
	}
	if err := appendTo(dbtest.NewOrg(t, pool), agent); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("agent of another organization: got %v, want ErrNotFound", err)
	}
	if err := appendTo(pool.org, "agent-none"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("no agent: got %v, want ErrNotFound", err)
	}
	var n int
	err := pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE org = $1`, pool.org).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d events are stored (%v), want 1", n, err)
	}
}
