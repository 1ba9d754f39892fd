package queue

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Turn is the place of an owner's next job in the virtual time of a queue.
type Turn struct {
	Start  time.Time `db:"start"`
	Others int       `db:"others"` // number of the organization's other owners with waiting jobs, at most 1,000
}

// Next returns the turn after a job of the given length.
func (t Turn) Next(length time.Duration) Turn {
	t.Start = t.Start.Add(length * time.Duration(t.Others+1))
	return t
}

// FairTurn returns the Turn of an owner's next job in the queue @queue, with the estimated length @length. @owner is
// the owner. The query ownLast yields the start of the Turn after the owner's latest job in the queue, or no row.
// nextOwner yields, as owner, the organization's next owner after o.owner that has waiting jobs there. The owners and
// the queue are read by two statements, because in a cluster they lie on two nodes.
//
// Organizations share a queue's workers, and an organization's owners share its part, by start-time fair queueing.
// River starts jobs in the order of scheduled_at, which is a virtual time here. If an organization has one owner, its
// first job is scheduled at the virtual time of the next job to start, and each further job where the one before it
// ends. An owner with a hundred thousand jobs therefore delays another owner's single job by one job, and an owner
// without jobs gains no advantage. With n owners, each owner's jobs lie n times as far apart, and their first jobs
// follow each other, so that together they get what one owner gets. Jobs that were queued when there were fewer owners
// keep their places. Virtual time begins in the year 2000, so that it never reaches the present.
func FairTurn(ctx context.Context, d db.DB, ownLast, nextOwner string, args pgx.StrictNamedArgs) (t Turn, err error) {
	own, err := db.One[struct {
		Others int        `db:"others"`
		Last   *time.Time `db:"last"`
	}](ctx, d, `
		WITH RECURSIVE o (owner) AS (
			SELECT 0::bigint
			UNION ALL
			SELECT n.owner FROM o CROSS JOIN LATERAL (`+nextOwner+`) n
		)
		SELECT (SELECT count(*)::integer FROM (SELECT FROM o WHERE owner NOT IN (0, @owner) LIMIT 1000) c) AS others,
		       (`+ownLast+`) AS last`, used(args, ownLast+nextOwner+"@owner"))
	if err != nil {
		return t, err
	}
	t.Others = own.Others
	t.Start, err = db.One[time.Time](ctx, d, `
		SELECT least(now(), greatest(@last::timestamptz, greatest('2000-01-01 00:00:00+00'::timestamptz, (
			SELECT scheduled_at FROM river_job
			WHERE state = 'available' AND queue = @queue AND attempt = 0
			ORDER BY priority, scheduled_at, id LIMIT 1)) + @behind::interval))`, pgx.StrictNamedArgs{
		"queue": args["queue"], "last": own.Last, "behind": behind(own.Last, own.Others, args["length"])})
	return t, err
}

// behind returns how far after the queue's next job the first job of an owner comes, if its organization has others.
func behind(last *time.Time, others int, length any) time.Duration {
	each, _ := length.(time.Duration)
	if last != nil {
		return 0
	}
	return each * time.Duration(max(others-1, 0))
}

// used returns the arguments that a statement names.
func used(args pgx.StrictNamedArgs, sql string) pgx.StrictNamedArgs {
	args = maps.Clone(args)
	maps.DeleteFunc(args, func(name string, _ any) bool { return !strings.Contains(sql, "@"+name) })
	return args
}
