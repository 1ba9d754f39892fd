package endpoint_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
)

// toyOwners is the kind of the owners' jobs in tests.
type toyOwners struct{}

func (toyOwners) Kind() string { return "embed_toys" }

// toyQueue is a queue. The test says which owners wait.
type toyQueue struct {
	*testing.T
	endpoint.Queue[toyOwners]
	jobs *river.Client[pgx.Tx]
}

func newToyQueue(t *testing.T, pool *pgxpool.Pool) *toyQueue {
	t.Helper()
	q := &toyQueue{T: t, jobs: embedtest.Jobs(t, pool, river.Config{})}
	q.DB, q.Endpoint = pool, embedtest.New(t, 8).Endpoint(t)
	space, err := endpoint.UseSpace(t.Context(), pool, "toys", "toys", 8)
	if err != nil {
		t.Fatal(err)
	}
	q.Endpoint.Use(space)
	return q
}

// call calls the queue while the owners that a query selects wait.
func (q *toyQueue) call(waiting string, args ...any) (jobs int) {
	q.Helper()
	q.Waiting = fmt.Sprintf(waiting, args...) + ` WHERE @space::smallint > 0`
	n, err := q.Call(q.Context(), q.jobs)
	if err != nil {
		q.Fatal(err)
	}
	return n
}

// order returns the owners of the waiting jobs, in the order in which they will start, as "organization/owner".
func (q *toyQueue) order() []string {
	q.Helper()
	order, err := db.All[string](q.Context(), q.DB, `
		SELECT concat(args ->> 'org', '/', args ->> 'owner') FROM river_job
		WHERE queue = 'embed_toys' AND state = 'available'
		ORDER BY priority, scheduled_at, id`)
	if err != nil {
		q.Fatal(err)
	}
	return order
}

// An organization has at most 100 jobs in the queue: those of the owners with the newest rows. The organization with
// the fewest running jobs comes first, even if its jobs were queued last.
func TestJobsOfOwnersAreInOrder(t *testing.T) {
	t.Parallel()
	pool, one := dbtest.Org(t)
	other, q := dbtest.NewOrg(t, pool), newToyQueue(t, pool)
	t.Cleanup(func() { // another run of this test has the same owners
		if _, err := pool.Exec(context.Background(), `DELETE FROM river_job WHERE queue = 'embed_toys'`); err != nil {
			t.Error(err)
		}
	})
	const many = `SELECT * FROM (SELECT %d AS org, n::bigint AS owner, n AS newest FROM generate_series(1, 500) n) w`
	for _, want := range []int{100, 0} {
		if n := q.call(many, one); n != want {
			t.Errorf("got %d jobs, want %d", n, want)
		}
	}
	if got := q.order(); got[0] != fmt.Sprint(one, "/500") || got[99] != fmt.Sprint(one, "/401") {
		t.Errorf("got the jobs %v; want those of the owners 500 to 401", got)
	}
	if _, err := q.DB.Exec(t.Context(), `
		UPDATE river_job SET state = 'running' WHERE (args ->> 'owner')::bigint IN (499, 500)`); err != nil {
		t.Fatal(err)
	}
	// Owner 450 has the newest rows of all, and there is another organization.
	const more = `
		SELECT * FROM (
			SELECT %d AS org, n::bigint AS owner, CASE n WHEN 450 THEN 9000 ELSE n END AS newest
			FROM generate_series(1, 500) n
			UNION ALL SELECT %d, n, n FROM generate_series(501, 504) n) w`
	if n := q.call(more, one, other); n != 4 {
		t.Errorf("got %d jobs of the other organization, want 4", n)
	}
	q.call(more, one, other)
	var want []string
	for _, owner := range []int{504, 503, 450, 502, 498, 501, 497} {
		org := one
		if owner > 500 {
			org = other
		}
		want = append(want, fmt.Sprint(org, "/", owner))
	}
	if diff := cmp.Diff(want, q.order()[:len(want)]); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}
