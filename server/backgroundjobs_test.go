package server_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/job"
	"github.com/loci-memory/loci/tenant/apikey"
)

func (c *client) backgroundJobs(query string) (list []job.Job) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/admin/jobs"+query, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// One list shows the jobs of queues and the work in slices. The operator sees all organizations; administrators see
// their own.
func TestBackgroundJobsAreListed(t *testing.T) {
	t.Parallel()
	c := newDatabaseClient(t)
	acme, other, operator := c.as("acme"), c.as("other"), c.operator()
	folder := acme.made("/v1/folders", `{"name":"f"}`)
	acme.upload(folder, "", "a.txt", "text")
	other.upload(other.made("/v1/folders", `{"name":"f"}`), "", "b.txt", "text")
	agent := acme.made("/v1/agents", `{"name":"a"}`)
	acme.capture(agent, chatter(1, 2, "Ann Lee"))
	acme.must("POST", "/v1/erasures", `{"texts":["Ann Lee"]}`)
	gone := c.as("gone")
	operator.must("DELETE", "/v1/admin/orgs?org_id="+operator.orgNamed("gone").ID, "")
	gone.key = ""
	for _, sql := range []string{
		`UPDATE river_job SET state = 'retryable', attempt = 2,
			errors = ARRAY['{"error": "first"}', '{"error": "the disk is full"}']::jsonb[]
			WHERE id = (SELECT min(id) FROM river_job)`,
		`INSERT INTO embedding_spaces (provider, model, dimension) VALUES ('p', 'old', 1), ('p', 'new', 2)`,
		`INSERT INTO reembedding (from_space, to_space, done, total)
			SELECT min(id), max(id), 3, 10 FROM embedding_spaces`,
	} {
		if _, err := c.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	all := operator.backgroundJobs("")
	byKind := map[string]job.Job{}
	for i, j := range all {
		if byKind[j.Kind] = j; i > 0 && all[i-1].CreatedAt.Before(j.CreatedAt) {
			t.Errorf("%s stands behind an older one", j.ID)
		}
	}
	for kind, state := range map[string]string{"erasure": job.Completed, "reembedding": job.Running,
		"organization_deletion": job.Running} {
		if byKind[kind].State != state {
			t.Errorf("%s: got %+v, want it %s; the kinds are %v", kind, byKind[kind], state,
				slices.Sorted(maps.Keys(byKind)))
		}
	}
	if r := byKind["reembedding"]; r.Done == nil || *r.Done != 3 || *r.Total != 10 || r.OrgID != nil {
		t.Errorf("the reembedding is %+v", r)
	}
	retrying := operator.backgroundJobs("?state=retrying")
	if len(retrying) != 1 || *retrying[0].Error != "the disk is full" || retrying[0].Attempt != 2 ||
		*retrying[0].OrgName != "acme" {
		t.Errorf("the failed job: got %+v", retrying)
	}
	page := operator.browse("GET", "/console/jobs", nil).Text
	for _, want := range []string{"organization deletion", "the disk is full", "3 of 10", "attempt 2 of",
		"/console/reembedding/cancel"} {
		if !strings.Contains(page, want) {
			t.Errorf("the console's page lacks %q: %s", want, page)
		}
	}
	if got := operator.browse("POST", "/console/reembedding/cancel", nil); got.Code != 303 ||
		operator.backgroundJobs("?kind=reembedding")[0].State != job.Cancelled {
		t.Errorf("the cancellation: got %d %s", got.Code, got.Text)
	}
	if got := operator.browse("POST", "/console/reembedding/start", nil); got.Code != 422 && got.Code != 400 {
		t.Errorf("a start without a next model: got %d %s", got.Code, got.Text)
	}
	own := acme.backgroundJobs("")
	for _, j := range own {
		if j.OrgName == nil || *j.OrgName != "acme" {
			t.Errorf("an administrator of acme sees %+v", j)
		}
	}
	if len(own) < 2 || len(own) >= len(all) {
		t.Errorf("acme has %d jobs of %d", len(own), len(all))
	}
	first := operator.backgroundJobs("?limit=2")
	rest := operator.backgroundJobs("?limit=1000&after=" + first[1].ID)
	if len(first)+len(rest) != len(all) || rest[0].ID != all[2].ID {
		t.Errorf("a page of %d goes on with %d of %d", len(first), len(rest), len(all))
	}
	if got := operator.backgroundJobs("?kind=erasure"); len(got) != 1 {
		t.Errorf("the erasures: %+v", got)
	}
	if got := operator.backgroundJobs("?org_id=" + operator.orgNamed("other").ID); len(got) == 0 ||
		*got[0].OrgName != "other" {
		t.Errorf("the jobs of other: %+v", got)
	}
	for path, want := range map[string]int{"/v1/admin/jobs?state=late": 422,
		"/v1/admin/jobs?org_id=" + operator.orgNamed("other").ID: 404} {
		if got := acme.call("GET", path, ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, got.Code, got.Text, want)
		}
	}
	reader := c.scoped(apikey.NewKey{Scopes: []string{apikey.Write}})
	if got := reader.call("GET", "/v1/admin/jobs", ""); got.Code != 403 || !strings.Contains(got.Text, "admin") {
		t.Errorf("a key without the scope: got %d %s", got.Code, got.Text)
	}
}

// addJobs adds finished jobs of the client's organization, all created at the same time, some seconds from now. It
// returns their ids, newest first.
func (c *client) addJobs(n, seconds int) []string {
	c.t.Helper()
	ids, err := db.All[string](c.t.Context(), c.pool, `
		WITH added AS (
			INSERT INTO river_job (kind, queue, state, args, max_attempts, created_at, finalized_at)
			SELECT 'listed', 'nobody', 'completed', jsonb_build_object('org', $1::integer), 1,
			       now() + $3 * interval '1 second', now()
			FROM generate_series(1, $2::integer)
			RETURNING id
		)
		SELECT 'job-' || md5(o.job_salt::text || a.id)::uuid
		FROM added a CROSS JOIN organizations o WHERE o.org = $1 ORDER BY a.id`, c.org, n, seconds)
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Reverse(ids)
	return ids
}

// The ids of an organization's jobs do not reveal how many jobs others have. They contain no number of the queue.
func TestIDsOfJobsCountNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.addJobs(3, 0)
	form := regexp.MustCompile(`^job-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, j := range c.backgroundJobs("?kind=listed&org_id=" + c.orgID()) {
		if !form.MatchString(j.ID) || seen[j.ID] {
			t.Errorf("the job %s has a number, or the id of another", j.ID)
		}
		seen[j.ID] = true
	}
	if len(seen) != 3 {
		t.Errorf("got the jobs %v, want 3", seen)
	}
}

// Jobs that were created at the same time have an order too, so pages are consecutive. Jobs that are added meanwhile
// come before them. A page can follow a job even if the job's state has changed since it was listed.
func TestPagesOfBackgroundJobsFollowOneAnother(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ownJobs := "?org_id=" + c.orgID() // without it the operator would see jobs of other tests
	want := append(c.addJobs(12, 0), c.addJobs(13, -1)...)
	var got []string
	for query := ownJobs + "&limit=4&state=completed"; ; {
		page := c.backgroundJobs(query)
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			got = append(got, j.ID)
		}
		last := page[len(page)-1].ID
		query = ownJobs + "&limit=4&state=completed&after=" + last
		c.addJobs(3, 1)
		if _, err := c.pool.Exec(t.Context(), `
			UPDATE river_job SET state = 'cancelled'
			WHERE kind = 'listed' AND args @> jsonb_build_object('org', $2::integer) AND 'job-' ||
			      md5((SELECT job_salt::text FROM organizations WHERE org = $2) || id)::uuid = $1`, last, c.org); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var oldest []string
	for _, j := range c.backgroundJobs(ownJobs + "&order=asc&limit=25") {
		oldest = append(oldest, j.ID)
	}
	slices.Reverse(oldest)
	if !slices.Equal(oldest, want) {
		t.Errorf("the oldest first: got %q, want %q", oldest, want)
	}
	before := c.backgroundJobs(ownJobs + "&limit=4&before=" + want[10])
	if len(before) != 4 || before[0].ID != want[6] || before[3].ID != want[9] {
		t.Errorf("before %s: got %+v", want[10], before)
	}
	deleted := want[4]
	if _, err := c.pool.Exec(t.Context(), `
		DELETE FROM river_job
		WHERE args @> jsonb_build_object('org', $2::integer) AND 'job-' ||
		      md5((SELECT job_salt::text FROM organizations WHERE org = $2) || id)::uuid = $1`, deleted, c.org); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"&after=" + deleted, "&before=" + deleted, "&before=nothing",
		"&after=" + want[3] + "&before=" + deleted} {
		got := c.call("GET", "/v1/admin/jobs"+ownJobs+query, "")
		if got.Code != 404 || !strings.Contains(got.Text, "Begin again") {
			t.Errorf("%s: got %d %s, want a 404 that says what to do", query, got.Code, got.Text)
		}
	}
	if last := c.backgroundJobs(ownJobs + "&after=" + want[24]); len(last) != 0 {
		t.Errorf("after the last: got %+v", last)
	}
}
