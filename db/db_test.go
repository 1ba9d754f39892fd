package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/migrations"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const org = db.Org(1)

func newAgent(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var id string
	err := pool.QueryRow(t.Context(), `
		INSERT INTO agents (org, name, agent_type, system) VALUES (1, 'a', 'letta_v1_agent', '') RETURNING id`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestServersThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	errs := make([]error, 6)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = db.Migrate(t.Context(), url) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	pool, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, table := range []string{"events", "chunks", "river_job"} {
		if _, err := pool.Exec(t.Context(), `SELECT FROM `+table); err != nil {
			t.Errorf("after six migrations: %v", err)
		}
	}
}

// A server killed between marking a version and applying it leaves it dirty and not applied.
func TestAMigrationThatWasCutOffIsAppliedAgain(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil || len(names) < 2 {
		t.Fatalf("migrations: %v (%v)", names, err)
	}
	for version := range len(names) {
		url := dbtest.EmptyURL(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		before := []string{`CREATE EXTENSION vector; CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);`}
		for _, name := range names[:version] {
			sql, err := fs.ReadFile(migrations.Files, name)
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, string(sql))
		}
		for _, sql := range append(before, fmt.Sprintf(`INSERT INTO schema_migrations VALUES (%d, true)`, version+1)) {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Migrate(t.Context(), url); err != nil {
			t.Errorf("%s was cut off: %v", names[version], err)
		}
		if _, err := conn.Exec(t.Context(), `SELECT FROM agent_files`); err != nil {
			t.Errorf("%s was cut off: %v", names[version], err)
		}
	}
}

func TestEventsAreGaplessAndInTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	agents := []string{newAgent(t, pool), newAgent(t, pool), newAgent(t, pool)}
	aborted := errors.New("aborted")
	write := func(random *rand.Rand) {
		events := make([]db.Event, 1+random.IntN(5))
		for i := range events {
			events[i] = db.Event{AgentID: agents[random.IntN(len(agents))], Type: db.FileOpened, RefID: fmt.Sprint(i)}
		}
		err := db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			written, err := db.Append(t.Context(), tx, org, events...)
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
	pool := dbtest.New(t)
	agent := newAgent(t, pool)
	if _, err := pool.Exec(t.Context(), `INSERT INTO organizations (name) VALUES ('other')`); err != nil {
		t.Fatal(err)
	}
	appendTo := func(org db.Org, agent string) error {
		return db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := db.Append(t.Context(), tx, org, db.Event{AgentID: agent, Type: db.AgentUpdated})
			return err
		})
	}
	if err := appendTo(org, agent); err != nil {
		t.Errorf("own agent: %v", err)
	}
	if err := appendTo(2, agent); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("agent of another organization: got %v, want ErrNotFound", err)
	}
	if err := appendTo(org, "agent-none"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("no agent: got %v, want ErrNotFound", err)
	}
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM events`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d events are stored (%v), want 1", n, err)
	}
}

func TestErrorsAreNamed(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for name, c := range map[string]struct {
		sql  string
		want error
	}{
		"no row":          {`SELECT org FROM organizations WHERE false`, db.ErrNotFound},
		"a name twice":    {`INSERT INTO organizations (name) VALUES ('default') RETURNING org`, db.ErrConflict},
		"no parent":       {`INSERT INTO folders (org, name) VALUES (99, 'x') RETURNING org`, db.ErrNotFound},
		"a broken rule":   {`INSERT INTO organizations (name) VALUES ('') RETURNING org`, db.ErrInvalid},
		"a missing value": {`INSERT INTO organizations (name) VALUES (NULL) RETURNING org`, db.ErrInvalid},
	} {
		if _, err := db.One[int32](t.Context(), pool, c.sql); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := db.One[string](t.Context(), pool, `SELECT $1::text`, "a\x00b"); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("NUL: got %v, want ErrInvalid", err)
	}
}

func TestTheURLMaySizeThePool(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	pool, err := db.Open(t.Context(), url+separator+"pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Config().MaxConns; n != 3 {
		t.Errorf("the pool has at most %d connections, want 3", n)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	type row struct {
		ID string `db:"id"`
		N  int    `db:"n"`
	}
	const rows = `SELECT 'id-' || n AS id, n FROM generate_series(1, 7) AS n WHERE n > @above`
	for name, c := range map[string]struct {
		page db.Page
		want []int
	}{
		"everything, descending":      {db.Page{}, []int{7, 6, 5, 4, 3, 2, 1}},
		"the first, ascending":        {db.Page{Limit: 3, Ascending: true}, []int{1, 2, 3}},
		"after one, ascending":        {db.Page{Limit: 2, Ascending: true, After: "id-3"}, []int{4, 5}},
		"after one, descending":       {db.Page{Limit: 2, After: "id-3"}, []int{2, 1}},
		"before one, ascending":       {db.Page{Limit: 2, Ascending: true, Before: "id-5"}, []int{3, 4}},
		"before one, descending":      {db.Page{Limit: 2, Before: "id-5"}, []int{7, 6}},
		"between two, ascending":      {db.Page{Ascending: true, After: "id-2", Before: "id-6"}, []int{3, 4, 5}},
		"after the last":              {db.Page{Ascending: true, After: "id-7"}, nil},
		"after one that is not there": {db.Page{After: "id-99"}, nil},
	} {
		list, err := db.List[row](t.Context(), pool, c.page, rows, "n", pgx.StrictNamedArgs{"above": 0})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []int
		for _, r := range list {
			got = append(got, r.N)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A job of a server whose lock is held stays with it; when the server is gone, the job goes back to the queue.
func TestJobsOfDeadServersGoBack(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	pool, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, server := range []string{"living", "dead"} {
		if _, err := pool.Exec(t.Context(), `
			INSERT INTO river_job (kind, queue, state, args, max_attempts, attempt, attempted_at, attempted_by)
			VALUES ('k', 'q', 'running', '{}', 5, 1, now(), ARRAY['earlier', $1::text])`, server); err != nil {
			t.Fatal(err)
		}
	}
	ctx, die := context.WithCancel(t.Context())
	ready, gone := make(chan struct{}), make(chan error, 1)
	presence := db.Presence{URL: url, ID: "living", Every: 1 << 40}
	go func() { gone <- presence.Keep(ctx, func() { close(ready) }) }()
	<-ready
	state := func(server string) (state string) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT state FROM river_job WHERE attempted_by[2] = $1`, server).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := state("dead"); got != "available" {
		t.Errorf("the dead server's job is %s, want available", got)
	}
	if got := state("living"); got != "running" {
		t.Errorf("the living server's job is %s, want running", got)
	}
	die()
	if err := <-gone; err != nil {
		t.Fatalf("keep: %v", err)
	}
	for given := 0; given == 0; { // Postgres lets go of a closed connection's locks a moment later
		if t.Context().Err() != nil {
			t.Fatal("the job of the server that ended was not given back")
		}
		if given, err = db.GiveBack(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if got := state("living"); got != "available" {
		t.Errorf("the job of the server that ended is %s, want available", got)
	}
}
