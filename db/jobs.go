package db

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Presence says on a database that a server lives, and gives the running jobs of dead servers back to the queue. A server's jobs
// carry its ID as the client that attempted them.
type Presence struct {
	URL   string        // of the database
	ID    string        // this server's, as its job client is configured
	Every time.Duration // between two looks for dead servers
	Hand  *Hand         // the jobs that this server works on; nil if it does not say
}

// Keep holds the server's lock and looks for dead servers until ctx ends or the connection is lost; ready is called once the lock is
// held and the jobs of dead servers are back in the queue. The lock goes with the connection: the caller calls Keep again.
func (p Presence) Keep(ctx context.Context, ready func()) error {
	conn, err := dial(ctx, p.URL)
	if err != nil {
		return fmt.Errorf("hold the server's lock: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1, hashtext($2))`, int32(classServer), p.ID); err != nil {
		return fmt.Errorf("hold the server's lock: %w", err)
	}
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	for first := true; ; first = false {
		if err := p.look(ctx, conn); err != nil {
			return err
		}
		if first {
			ready()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lookPatience bounds a look for jobs to give back: a database that hangs is one that is lost.
const lookPatience = 30 * time.Second

func (p Presence) look(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if _, err := GiveBack(ctx, conn); err != nil {
		return err
	}
	if err := p.Hand.giveBack(ctx, conn, p.ID); err != nil {
		return err
	}
	return ahead(ctx, conn)
}

// Hand holds the jobs that a server works on.
type Hand struct {
	mu   sync.Mutex
	jobs map[int64]int
}

// Hold takes a job into the hand until release is called.
func (h *Hand) Hold(job int64) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.jobs == nil {
		h.jobs = map[int64]int{}
	}
	h.jobs[job]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.jobs[job]--; h.jobs[job] == 0 {
			delete(h.jobs, job)
		}
	}
}

// Empty says whether the server works on no job.
func (h *Hand) Empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.jobs) == 0
}

// lostAfter is how old a job must be that counts as lost where its server does not have it in hand: it takes a moment to get there,
// and to be marked as done.
const lostAfter = "20 seconds"

// giveBack makes the jobs available again that the database believes this server to work on, and it does not: the database went away
// between taking them and saying so, or before it was told that they are done.
func (h *Hand) giveBack(ctx context.Context, conn *pgx.Conn, id string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	held := slices.AppendSeq([]int64{}, maps.Keys(h.jobs))
	h.mu.Unlock()
	_, err := conn.Exec(ctx, `
		UPDATE river_job SET state = 'available', finalized_at = NULL
		WHERE state = 'running' AND attempted_by[cardinality(attempted_by)] = $1 AND id <> ALL ($2::bigint[])
		  AND attempted_at < now() - interval '`+lostAfter+`'`, id, held)
	if err != nil {
		return fmt.Errorf("give back the jobs that were lost: %w", err)
	}
	return nil
}

// ahead puts the jobs that come back after a pause before those of their queue that wait for their turn: turns are of a time long ago, and
// they come with the time of the day.
func ahead(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		UPDATE river_job j SET scheduled_at = first.scheduled_at
		FROM river_queue q
		CROSS JOIN LATERAL (
			SELECT scheduled_at FROM river_job
			WHERE state = 'available' AND queue = q.name
			ORDER BY priority, scheduled_at, id
			LIMIT 1
		) first
		WHERE j.state = 'available' AND j.queue = q.name
		  AND j.scheduled_at BETWEEN first.scheduled_at + interval '1 year' AND now()`)
	if err != nil {
		return fmt.Errorf("put jobs that are tried again ahead: %w", err)
	}
	return nil
}

// execer reads one row; a connection, a pool and a transaction can.
type execer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// GiveBack makes the running jobs of servers whose lock is free available again, and says how many they were.
func GiveBack(ctx context.Context, conn execer) (int, error) {
	var n int
	err := conn.QueryRow(ctx, `
		WITH alive AS (
			SELECT objid FROM pg_locks
			WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
			  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		), back AS (
			UPDATE river_job SET state = 'available', scheduled_at = least(scheduled_at, now()), finalized_at = NULL
			WHERE state = 'running'
			  AND (hashtext(attempted_by[cardinality(attempted_by)])::bigint & 4294967295)::oid NOT IN (SELECT objid FROM alive)
			RETURNING id
		)
		SELECT count(*) FROM back`, int64(classServer)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("give back the jobs of dead servers: %w", err)
	}
	return n, nil
}
