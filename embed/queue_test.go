package embed_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
)

// toyOwners is the kind of the owners' jobs in tests.
type toyOwners struct{}

func (toyOwners) Kind() string { return "embed_toys" }

// Organizations take turns in the queue of owners, and one with many owners has at most 100 jobs there.
func TestOwnersOfOrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	pool, one := dbtest.Org(t)
	other := dbtest.NewOrg(t, pool)
	endpoint := embedtest.New(t, 8).Endpoint(t)
	space, err := embed.UseSpace(t.Context(), pool, "toys", "toys", 8)
	if err != nil {
		t.Fatal(err)
	}
	endpoint.Use(space)
	q := &embed.Queue[toyOwners]{Waiting: fmt.Sprintf(`
		SELECT %[1]d AS org, n::bigint AS owner FROM generate_series(1, 500) n WHERE @space::smallint > 0
		UNION ALL SELECT %[2]d, n FROM generate_series(501, 503) n`, one, other)}
	q.DB, q.Endpoint = pool, endpoint
	jobs := embedtest.Jobs(t, pool, river.Config{})
	t.Cleanup(func() { // for another run of this test, which has the same owners
		if _, err := pool.Exec(context.Background(), `DELETE FROM river_job WHERE queue = 'embed_toys'`); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []int{103, 0} {
		if n, err := q.Call(t.Context(), jobs); n != want || err != nil {
			t.Errorf("got %d jobs, %v; want %d", n, err, want)
		}
	}
	orgs, err := db.All[db.Org](t.Context(), pool, `
		SELECT (args ->> 'org')::integer FROM river_job WHERE queue = 'embed_toys' ORDER BY scheduled_at, id`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]db.Org{one, other, one, other, one, other, one}, orgs[:7]); diff != "" ||
		slices.Contains(orgs[7:], other) {
		t.Errorf("the organizations of the jobs are %v; want %d and %d in turns", orgs, one, other)
	}
}
