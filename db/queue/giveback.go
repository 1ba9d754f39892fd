package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Presence announces a living server to the others on its database, and returns the running jobs of dead servers to the
// queue. A server's jobs carry its ID as the client that attempted them.
type Presence struct {
	URL      string        // of the database
	ID       string        // this server's, as its River client is configured
	Every    time.Duration // between two looks for dead servers
	InFlight *InFlight     // the jobs that this server works on
}

// Keep holds the server's lock and looks for dead servers until ctx ends or the connection is lost. It calls ready
// once, when the lock is held and the jobs of dead servers are back in the queue. The lock ends with the connection:
// the caller calls Keep again, unless the error is a *db.SchemaError.
func (p Presence) Keep(ctx context.Context, ready func()) error {
	conn, err := db.Dial(ctx, p.URL)
	if err != nil {
		return fmt.Errorf("hold the server's lock: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := db.Announce(ctx, conn, p.ID); err != nil {
		return err
	}
	for first := true; ; first = false {
		if err := p.recover(ctx, conn); err != nil {
			return err
		}
		if first {
			ready()
		}
		if err := pause(ctx, conn, p.Every); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// pause waits for a time, or until ctx ends. It returns an error as soon as the connection is lost.
func pause(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		_, err := conn.WaitForNotification(waiting) // nobody sends any: it reads the connection
		switch {
		case waiting.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("hold the server's lock: %w", err)
		}
	}
}

// recoverTimeout bounds one look for jobs to give back. A connection that takes longer counts as lost.
const recoverTimeout = 30 * time.Second

func (p Presence) recover(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	if _, err := GiveBack(ctx, conn); err != nil {
		return err
	}
	if err := p.giveBackLost(ctx, conn); err != nil {
		return err
	}
	return retriesFirst(ctx, conn)
}

// GiveBack makes the running jobs of servers whose lock is free available again, and returns their number.
func GiveBack(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (n int, err error) {
	err = conn.QueryRow(ctx, `
		WITH back AS (
			UPDATE river_job SET state = 'available', scheduled_at = least(scheduled_at, now()), finalized_at = NULL
			WHERE state = 'running' AND `+db.NoServer("attempted_by[cardinality(attempted_by)]")+`
			RETURNING id
		)
		SELECT count(*) FROM back`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("give back the jobs of dead servers: %w", err)
	}
	return n, nil
}

// giveBackLost makes the jobs available again that the database counts as this server's and that are not in flight,
// because the connection broke after River took them or before River marked them as done. It skips jobs that were taken
// in the last 20 seconds, which a worker may be about to start.
func (p Presence) giveBackLost(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		UPDATE river_job SET state = 'available', finalized_at = NULL
		WHERE state = 'running' AND attempted_by[cardinality(attempted_by)] = $1 AND id <> ALL ($2::bigint[])
		  AND attempted_at < now() - interval '20 seconds'`, p.ID, p.InFlight.ids())
	if err != nil {
		return fmt.Errorf("give back the jobs that were lost: %w", err)
	}
	return nil
}

// retriesFirst puts retried jobs before the jobs of their queue that have a fair start: a retry is scheduled at a
// present time, and a fair start in the virtual time of FairStart.
func retriesFirst(ctx context.Context, conn *pgx.Conn) error {
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
		return fmt.Errorf("put jobs that are tried again first: %w", err)
	}
	return nil
}

// Dead returns those of some servers' IDs whose lock is free: they do not run any more, or have lost the database.
func Dead(ctx context.Context, d db.DB, ids []string) ([]string, error) {
	return db.All[string](ctx, d, `SELECT id FROM unnest($1::text[]) AS id WHERE `+db.NoServer("id"), ids)
}
