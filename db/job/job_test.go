package job_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/job"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an organization with jobs. tx is one snapshot of the database, which is rolled back at the end of the
// test, so that jobs of other tests are not seen and jobs of no organization can be added.
type fixture struct {
	testing.TB
	tx  pgx.Tx
	org db.Org
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return &fixture{TB: t, tx: tx, org: org}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.tx.Exec(f.Context(), sql, args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

// add adds a job of the fixture's organization. It was created some minutes ago.
func (f *fixture) add(kind, state string, minutes int) {
	f.Helper()
	f.exec(`
		INSERT INTO river_job (kind, queue, state, args, max_attempts, attempt, errors, created_at, finalized_at)
		SELECT $2, 'nobody', $3::text::river_job_state, jsonb_build_object('org', $1::integer), 5, 2,
		       ARRAY['{"error": "first"}', '{"error": "last"}']::jsonb[], now() - $4 * interval '1 minute',
		       CASE WHEN $3 IN ('completed', 'discarded', 'cancelled') THEN now() END`, f.org, kind, state, minutes)
}

func (f *fixture) list(q job.Query, p db.Page) []job.Job {
	f.Helper()
	list, err := job.List(f.Context(), f.tx, q, p)
	if err != nil {
		f.Fatal(err)
	}
	return list
}

func kinds(list []job.Job) (all []string) {
	for _, j := range list {
		all = append(all, j.Kind)
	}
	return all
}

// The states of River's jobs are those that the list documents. A job that waits for a worker, for its time, or for
// another job is waiting.
func TestStatesOfQueuedJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := map[string]string{"available": job.Waiting, "scheduled": job.Waiting, "pending": job.Waiting,
		"running": job.Running, "retryable": job.Retrying, "completed": job.Completed, "discarded": job.Failed,
		"cancelled": job.Cancelled}
	for state := range want {
		f.add(state, state, 1)
	}
	list := f.list(job.Query{Org: f.org}, db.Page{})
	if len(list) != len(want) {
		t.Fatalf("got %d jobs, want %d", len(list), len(want))
	}
	for _, j := range list {
		if j.State != want[j.Kind] || !slices.Contains(job.States, j.State) {
			t.Errorf("River's state %s is shown as %s, want %s", j.Kind, j.State, want[j.Kind])
		}
		if j.Attempt != 2 || j.MaxAttempts != 5 || j.Error == nil || *j.Error != "last" {
			t.Errorf("%s: got %+v, want the last error of attempt 2 of 5", j.Kind, j)
		}
	}
}

// Replays and erasures are listed with the jobs of queues. Erasures that wait for a decision or were denied are not.
func TestWorkOutsideQueuesIsListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`INSERT INTO replays (org, status, why, prices, steps, steps_done, created_at)
		SELECT $1, s, 'why', '{}', 10, 4, now() - age::interval
		FROM (VALUES ('running', '1 minute'), ('done', '2 minutes'), ('failed', '3 minutes')) r (s, age)`, f.org)
	f.exec(`INSERT INTO erasures (org, status, requested_by, created_at)
		SELECT $1, s, '{}', now() - age::interval
		FROM (VALUES ('pending', '4 minutes'), ('running', '5 minutes'), ('completed', '6 minutes'),
		             ('incomplete', '7 minutes'), ('denied', '8 minutes')) e (s, age)`, f.org)
	var got []string
	for _, j := range f.list(job.Query{Org: f.org}, db.Page{}) {
		line := j.Kind + " " + j.State
		if j.Done != nil {
			line += fmt.Sprintf(" %d/%d", *j.Done, *j.Total)
		}
		if !strings.HasPrefix(j.ID, j.Kind+"-") || j.OrgID == nil {
			t.Errorf("%s: the id is %s, the organization %v", line, j.ID, j.OrgID)
		}
		got = append(got, line)
	}
	want := []string{"replay running 4/10", "replay completed 4/10", "replay failed 4/10", "erasure running",
		"erasure completed", "erasure failed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q, the newest first", got, want)
	}
}

// An organization sees its own jobs, with ids that contain no number. Only the operator sees the work of the server and
// of other organizations.
func TestWhoSeesWhichJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := dbtest.NewOrg(t, f.tx)
	f.add("mine", "available", 1)
	f.exec(`INSERT INTO river_job (kind, queue, args, max_attempts)
		VALUES ('theirs', 'nobody', jsonb_build_object('org', $1::integer), 1), ('server', 'nobody', '{}', 1)`, other)
	f.exec(`INSERT INTO replays (org, prices, steps) VALUES ($1, '{}', 1)`, other)
	f.exec(`INSERT INTO embedding_spaces (provider, model, dimension) VALUES ('jobs', 'old', 1), ('jobs', 'new', 1)`)
	f.exec(`INSERT INTO reembedding (from_space, to_space, state, done, total)
		SELECT min(id), max(id), 'switched', 3, 7 FROM embedding_spaces WHERE provider = 'jobs'`)
	f.exec(`UPDATE organizations SET deleted_at = now() WHERE org = $1`, other)

	own := f.list(job.Query{Org: f.org}, db.Page{})
	if got := kinds(own); !slices.Equal(got, []string{"mine"}) {
		t.Fatalf("an organization sees %q, want its own job", got)
	}
	if !regexp.MustCompile(`^job-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(own[0].ID) {
		t.Errorf("the id %s is no UUID", own[0].ID)
	}
	all := map[string]job.Job{}
	for _, j := range f.list(job.Query{}, db.Page{}) {
		all[j.Kind] = j
	}
	for kind, state := range map[string]string{"mine": job.Waiting, "theirs": job.Waiting, "server": job.Waiting,
		"replay": job.Running, "reembedding": job.Completed, "organization_deletion": job.Running} {
		if all[kind].State != state {
			t.Errorf("the operator's list has %s as %+v, want it %s", kind, all[kind], state)
		}
	}
	if j := all["server"]; j.OrgID != nil || j.ID != fmt.Sprint("job-", j.Number) {
		t.Errorf("the server's own job is %+v", j)
	}
	if j := all["mine"]; j.ID != own[0].ID || j.OrgID == nil {
		t.Errorf("the operator sees %+v, its organization the id %s", j, own[0].ID)
	}
}

func TestPagesOfJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, kind := range []string{"e", "d", "c", "b", "a"} {
		f.add(kind, map[bool]string{true: "running", false: "available"}[i%2 == 0], i)
	}
	for range 3 { // of the same time: the number decides
		f.add("f", "available", -1)
	}
	org := job.Query{Org: f.org}
	all := f.list(org, db.Page{})
	if got := strings.Join(kinds(all), ""); got != "fffedcba" {
		t.Fatalf("got %s, want the newest first", got)
	}
	if all[0].Number <= all[1].Number || all[1].Number <= all[2].Number {
		t.Errorf("jobs of one time are in the order %d, %d, %d", all[0].Number, all[1].Number, all[2].Number)
	}
	d, b := all[4].ID, all[6].ID
	for _, c := range []struct {
		name string
		q    job.Query
		p    db.Page
		want string
	}{
		{"a limit", org, db.Page{Limit: 4}, "fffe"},
		{"no items", org, db.Page{Limit: db.NoItems}, ""},
		{"the oldest first", org, db.Page{Ascending: true, Limit: 2}, "ab"},
		{"after a job", org, db.Page{After: d, Limit: 2}, "cb"},
		{"before a job are its nearest", org, db.Page{Before: d, Limit: 2}, "fe"},
		{"between two", org, db.Page{After: d, Before: b}, "c"},
		{"after the last", org, db.Page{After: all[7].ID}, ""},
		{"a state", job.Query{Org: f.org, State: job.Running}, db.Page{}, "eca"},
		{"a kind", job.Query{Org: f.org, Kind: "b"}, db.Page{}, "b"},
		{"a state and another's kind", job.Query{Org: f.org, State: job.Running, Kind: "b"}, db.Page{}, ""},
		{"after a job in another state", job.Query{Org: f.org, State: job.Running}, db.Page{After: d}, "ca"},
	} {
		if got := strings.Join(kinds(f.list(c.q, c.p)), ""); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	other := dbtest.NewOrg(t, f.tx)
	for _, c := range []struct {
		name string
		org  db.Org
		p    db.Page
	}{
		{"after a job that is gone", f.org, db.Page{After: "job-gone"}},
		{"before a job that is gone", f.org, db.Page{Before: "job-gone"}},
		{"before a job that is gone, after one that is there", f.org, db.Page{After: d, Before: "job-gone"}},
		{"after another organization's job", other, db.Page{After: d}},
	} {
		list, err := job.List(t.Context(), f.tx, job.Query{Org: c.org}, c.p)
		if !errors.Is(err, db.ErrNotFound) || len(list) > 0 || !strings.Contains(err.Error(), "Begin again") {
			t.Errorf("%s: got %d jobs, %v, want ErrNotFound that says what to do", c.name, len(list), err)
		}
	}
}

// A job is due at its time, and has been created before.
func TestTimesOfAJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	due := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	f.exec(`INSERT INTO river_job (kind, queue, state, args, max_attempts, scheduled_at)
		VALUES ('later', 'nobody', 'scheduled', jsonb_build_object('org', $1::integer), 1, $2)`, f.org, due)
	j := f.list(job.Query{Org: f.org}, db.Page{})[0]
	if !j.DueAt.Equal(due) || !j.CreatedAt.Before(due) || j.StartedAt != nil || j.EndedAt != nil || j.Error != nil {
		t.Errorf("got %+v, want it due at %v and not begun", j, due)
	}
}
