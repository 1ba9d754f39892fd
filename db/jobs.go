package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Presence says on a database that a server lives, and gives the running jobs of dead servers back to the queue. A server's jobs
// carry its ID as the client that attempted them.
type Presence struct {
	URL   string        // of the database
	ID    string        // this server's, as its job client is configured
	Every time.Duration // between two looks for dead servers
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
		if _, err := GiveBack(ctx, conn); err != nil {
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
			UPDATE river_job SET state = 'available', scheduled_at = now(), finalized_at = NULL
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
