package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Presence announces a living server to the others on its database, and returns the running jobs of dead servers to the
// queue. A job names the ID of its server as the client that last attempted it.
type Presence struct {
	URL      string        // URL of the database
	ID       string        // ID of this server, also of its River client
	Every    time.Duration // interval between two looks for dead servers
	InFlight *InFlight     // jobs that this server works on
	Writes   bool          // this server has a model that writes summaries
}

// Keep holds the server's lock and looks for dead servers until ctx ends or the connection is lost. It calls ready
// once, when it holds the lock and the jobs of dead servers are back in the queue. The lock ends with the connection.
// The caller then calls Keep again, unless the error is a *db.SchemaError.
func (p Presence) Keep(ctx context.Context, ready func()) error {
	conn, err := db.Dial(ctx, p.URL)
	if err != nil {
		return fmt.Errorf("hold the server's lock: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := db.Announce(ctx, conn, p.ID); err != nil {
		return err
	}
	if p.Writes {
		if err := db.AnnounceWriter(ctx, conn); err != nil {
			return fmt.Errorf("announce a model: %w", err)
		}
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

// pause waits for d or until ctx ends. It returns an error as soon as the connection is lost.
func pause(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		_, err := conn.WaitForNotification(waiting) // nobody sends a notification, but this reads the connection
		switch {
		case waiting.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("hold the server's lock: %w", err)
		}
	}
}

// recoverTimeout limits one look for jobs to give back. A connection that takes longer counts as lost.
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

// GiveBack makes the running jobs of dead servers, those without a lock, available again. It returns the number of
// jobs.
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

// giveBackLost makes jobs available again that the database assigns to this server but that are not in flight, because
// the connection broke after River took them, or before River marked them as done. It skips jobs that were taken in the
// last 20 seconds, because a worker may be about to start them.
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

// retriesFirst puts retried jobs before the other jobs of their queue if the queue has fair turns. A retry is scheduled
// at a present time, but a fair turn in the virtual time of FairTurn.
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

// Dead returns the ids of servers without a lock: they no longer run, or have lost the database.
func Dead(ctx context.Context, d db.DB, ids []string) ([]string, error) {
	return db.All[string](ctx, d, `SELECT id FROM unnest($1::text[]) AS id WHERE `+db.NoServer("id"), ids)
}
