package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/riverqueue/river/rivertype"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/queue"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// A server ends if another program migrated its database while the server was not connected.
func TestAServerEndsOnAnotherSchema(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	if _, err := dbtest.Owner(t, pool).Exec(t.Context(), `UPDATE schema_migrations SET version = 9999`); err != nil {
		t.Fatal(err)
	}
	presence := queue.Presence{URL: pool.Config().ConnString(), ID: "old", Every: 1 << 40, InFlight: &queue.InFlight{}}
	err := presence.Keep(t.Context(), func() { t.Error("the server is ready") })
	if _, ok := errors.AsType[*db.SchemaError](err); !ok || !strings.Contains(err.Error(), "version 9999") {
		t.Errorf("got %v, want a SchemaError that names version 9999", err)
	}
}

// A job works for the organization in its arguments, or for none if the arguments name none.
func TestAJobWorksForItsOrganization(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]db.Org{`{"org":7,"file_key":3}`: 7, `{}`: 0} {
		got := db.Org(-1)
		err := (&queue.ForOrg{}).Work(t.Context(), &rivertype.JobRow{EncodedArgs: []byte(args)},
			func(ctx context.Context) error { got = db.OrgOf(ctx); return nil })
		if err != nil || got != want {
			t.Errorf("%s: got the organization %d, %v; want %d", args, got, err, want)
		}
	}
	err := (&queue.ForOrg{}).Work(t.Context(), &rivertype.JobRow{EncodedArgs: []byte(`{"org":"seven"}`)},
		func(context.Context) error { t.Error("a job without an organization works"); return nil })
	if err == nil {
		t.Error("an organization that is no number: got no error")
	}
}

// A server notices at once that it has lost its connection, and with it its lock.
func TestALostLockIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	id := fmt.Sprint("cut off ", org)
	ready, ended := make(chan struct{}), make(chan error, 1)
	presence := queue.Presence{URL: pool.Config().ConnString(), ID: id, Every: 1 << 62, InFlight: &queue.InFlight{}}
	go func() { ended <- presence.Keep(t.Context(), func() { close(ready) }) }()
	<-ready
	if n, err := db.One[int](t.Context(), pool, `
		SELECT count(pg_terminate_backend(pid))::integer FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
		  AND objid = (hashtext($2)::bigint & 4294967295)::oid`, int64(db.LockServer), id); err != nil || n != 1 {
		t.Fatalf("cut %d connections, %v", n, err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "hold the server's lock") {
		t.Errorf("got %v", err)
	}
}

// A job stays with its server while the server's lock is held. When the server is gone, the job goes back to the queue.
func TestJobsOfDeadServersGoBack(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	living, dead := fmt.Sprint("living ", org), fmt.Sprint("dead ", org)
	add := func(server string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `
			INSERT INTO river_job (kind, queue, state, args, max_attempts, attempt, attempted_at, attempted_by)
			VALUES ('k', 'q', 'running', '{}', 5, 1, now(), ARRAY['earlier', $1::text])`, server); err != nil {
			t.Fatal(err)
		}
	}
	add(dead)
	ctx, die := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	presence := queue.Presence{URL: pool.Config().ConnString(), ID: living, Every: 1 << 40, InFlight: &queue.InFlight{}}
	go func() { ended <- presence.Keep(ctx, func() { close(ready) }) }()
	<-ready
	add(living) // not before: another test gives back the jobs of all servers without a lock
	state := func(server string) (state string) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `SELECT state FROM river_job WHERE attempted_by[2] = $1`, server).Scan(&state)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := state(dead); got != "available" {
		t.Errorf("the dead server's job is %s, want available", got)
	}
	if _, err := queue.GiveBack(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := state(living); got != "running" {
		t.Errorf("the living server's job is %s, want running", got)
	}
	die()
	if err := <-ended; err != nil {
		t.Fatalf("keep: %v", err)
	}
	// Postgres frees a closed connection's locks a moment later. Another test may give the job back first.
	for state(living) == "running" {
		if t.Context().Err() != nil {
			t.Fatal("the job of the server that ended was not given back")
		}
		if _, err := queue.GiveBack(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if got := state(living); got != "available" {
		t.Errorf("the job of the server that ended is %s, want available", got)
	}
}

// The other servers know that a server has a model, from when it is ready.
func TestAModelIsAnnounced(t *testing.T) {
	t.Parallel()
	pool, org := dbtest.Org(t)
	has := func() bool {
		t.Helper()
		has, err := db.HasWriter(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	for _, writes := range []bool{false, true} {
		ready, ended := make(chan struct{}), make(chan error, 1)
		ctx, end := context.WithCancel(t.Context())
		presence := queue.Presence{URL: pool.Config().ConnString(), ID: fmt.Sprint("writer ", org, writes), Every: 1 << 62,
			InFlight: &queue.InFlight{}, Writes: writes}
		go func() { ended <- presence.Keep(ctx, func() { close(ready) }) }()
		<-ready
		if has() != writes {
			t.Errorf("a server that has a model, %t, is announced as one that has %t", writes, !writes)
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for has() { // Postgres notices a moment later that the connection has ended
			runtime.Gosched()
		}
	}
}
