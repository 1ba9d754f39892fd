package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// wireOrg is an organization in the API's form.
type wireOrg struct {
	ID, Name        string
	CreatedAt       string `json:"created_at"`
	PrivilegedTools any    `json:"privileged_tools"`
}

func (c *client) orgs(query string) (list []wireOrg) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/admin/orgs"+query, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// orgNamed returns the organization with a name; the zero value if there is none.
func (c *client) orgNamed(name string) (found wireOrg) {
	c.t.Helper()
	for after := ""; ; {
		page := c.orgs("?limit=100&after=" + after)
		for _, o := range page {
			if after = o.ID; o.Name == name {
				found = o
			}
		}
		if len(page) == 0 {
			return found
		}
	}
}

func TestTheOperatorManagesOrganizations(t *testing.T) {
	t.Parallel()
	keyed := newClient(t)
	operators := map[string]*client{"without a key": newOpenClient(t), "with an operator's key": keyed.operator()}
	for operator, c := range operators {
		acme, umbrella := keyed.unique("acme"), keyed.unique("umbrella")
		id := c.made("/v1/admin/orgs/", fmt.Sprintf(`{"name":%q,"privileged_tools":false}`, acme))
		if o := c.orgNamed(acme); o.ID != id || o.CreatedAt == "" || o.PrivilegedTools != false {
			t.Errorf("%s: got %+v, want %s with all fields", operator, o, id)
		}
		c.must("PATCH", "/v1/admin/orgs?org_id="+id, fmt.Sprintf(`{"name":%q}`, umbrella))
		if o := c.orgNamed(umbrella); o.ID != id {
			t.Errorf("%s, renamed: got %+v, want %s", operator, o, id)
		}
		for _, refused := range []struct {
			method, query, body string
			want                int
		}{
			{"POST", "", fmt.Sprintf(`{"name":%q}`, umbrella), 409}, {"POST", "", `{"name":""}`, 400}, {"POST", "", `{}`, 422},
			{"POST", "", `{"name":"` + strings.Repeat("x", 201) + `"}`, 400}, {"POST", "", `{"name":"a\u0007"}`, 400},
			{"PATCH", "?org_id=" + id, `{"name":"default"}`, 409}, {"PATCH", "", `{"name":"x"}`, 422},
			{"PATCH", "?org_id=" + c.orgNamed("default").ID, `{"name":"x"}`, 400},
			{"DELETE", "?org_id=" + c.orgNamed("default").ID, "", 400}, {"DELETE", "?org_id=umbrella", "", 422},
			{"DELETE", "?org_id=org-123e4567-e89b-42d3-8456-426614174000", "", 404},
		} {
			if got := c.call(refused.method, "/v1/admin/orgs"+refused.query, refused.body); got.Code != refused.want {
				t.Errorf("%s, %+v: got %d %s", operator, refused, got.Code, got.Text)
			}
		}
		if got := c.must("DELETE", "/v1/admin/orgs?org_id="+id, ""); !strings.Contains(got, id) {
			t.Errorf("%s, deleted: got %s, want the organization", operator, got)
		}
		if got := c.call("DELETE", "/v1/admin/orgs?org_id="+id, ""); got.Code != 404 || c.orgNamed(umbrella).ID != "" {
			t.Errorf("%s, deleted twice: got %d %s, list %v", operator, got.Code, got.Text, c.orgs(""))
		}
	}
}

func TestOrganizationsArePaged(t *testing.T) {
	t.Parallel()
	keyed := newClient(t)
	c := keyed.operator()
	var names, want []string
	for i := range 5 {
		want = append(want, keyed.unique(fmt.Sprintf("org %d", i)))
		c.made("/v1/admin/orgs", fmt.Sprintf(`{"name":%q}`, want[i]))
	}
	for after := ""; ; {
		page := c.orgs("?limit=2&after=" + after)
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			if after = o.ID; slices.Contains(want, o.Name) { // other tests create organizations, too
				names = append(names, o.Name)
			}
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// A key that is not the operator's shows only its own organization, and cannot change any.
func TestOrganizationsAreTheOperators(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	alice, mallory := c.as("alice"), c.as("mallory")
	operator := c.operator()
	foreign, mallorys := operator.orgNamed(c.unique("alice")), operator.orgNamed(c.unique("mallory"))
	if list := mallory.orgs(""); len(list) != 1 || list[0].ID != mallorys.ID {
		t.Errorf("mallory sees %+v, want only its own organization", list)
	}
	for _, id := range []string{foreign.ID, operator.orgNamed("default").ID, mallorys.ID} {
		if got := mallory.call("PATCH", "/v1/admin/orgs?org_id="+id, `{"name":"x"}`); got.Code != 403 {
			t.Errorf("rename %s: got %d %s, want 403", id, got.Code, got.Text)
		}
		if got := mallory.call("DELETE", "/v1/admin/orgs?org_id="+id, ""); got.Code != 403 {
			t.Errorf("delete %s: got %d %s, want 403", id, got.Code, got.Text)
		}
	}
	if got := mallory.call("POST", "/v1/admin/orgs", `{"name":"x"}`); got.Code != 403 {
		t.Errorf("create: got %d %s, want 403", got.Code, got.Text)
	}
	if current := operator.orgNamed(foreign.Name); current != foreign || operator.orgNamed(mallorys.Name) != mallorys {
		t.Errorf("the organizations are %+v and %+v, want those of before", current, operator.orgNamed(mallorys.Name))
	}
	if list := alice.orgs(""); len(list) != 1 || list[0] != foreign {
		t.Errorf("alice sees %+v, want %+v", list, foreign)
	}
}

// When an organization is deleted, its keys are refused at once. A new organization with the same name has no access to
// the old data.
func TestDeletedOrganizationsAreClosed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	acme, operator := c.as("acme"), c.operator()
	folder := acme.made("/v1/folders", `{"name":"notes"}`)
	operator.must("DELETE", "/v1/admin/orgs?org_id="+operator.orgNamed(c.unique("acme")).ID, "")
	if got := acme.call("GET", "/v1/folders", ""); got.Code != 401 {
		t.Errorf("a key of the deleted organization: got %d %s, want 401", got.Code, got.Text)
	}
	again := c.as("acme")
	if got := again.call("GET", "/v1/folders/"+folder, ""); got.Code != 404 {
		t.Errorf("the folder under the same name: got %d %s, want 404", got.Code, got.Text)
	}
}

// lateBody is a request body that deletes the request's organization before its first byte is read.
type lateBody struct {
	io.Reader
	remove func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	b.remove()
	return b.Reader.Read(p)
}

// If an organization is deleted after a request was accepted, the request gets the same answer as one that comes later.
func TestARequestThatOutlivesItsOrganizationIsRefused(t *testing.T) {
	t.Parallel()
	c := newElsewhereClient(t) // Clear works on all organizations
	for i, path := range []string{"/v1/agents/", "/v1/folders/", "/v1/blocks/", "/v1/archives/"} {
		name := fmt.Sprintf("org %d", i)
		owner := c.as(name)
		remove := sync.OnceFunc(func() {
			if _, err := c.server.Keys.DeleteOrg(t.Context(), c.unique(name)); err != nil {
				t.Error(err)
			}
			if _, err := c.server.Keys.Clear(t.Context(), func(apikey.Organization, string, int) {}); err != nil {
				t.Error(err)
			}
		})
		r := httptest.NewRequestWithContext(t.Context(), "POST", path,
			&lateBody{strings.NewReader(`{"name":"late","label":"late","value":"v"}`), remove})
		r.Header.Set("Authorization", "Bearer "+owner.key)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		owner.ServeHTTP(w, r)
		if w.Code != 401 && w.Code != 404 || strings.Contains(w.Body.String(), "_fkey") {
			t.Errorf("%s: got %d %s, want 401 or 404 without the name of a constraint", path, w.Code, w.Body)
		}
	}
}

// orgTables returns the number of an organization's rows in each table with a column org.
func (c *client) orgTables(org db.Org) map[string]int {
	c.t.Helper()
	names, err := db.All[string](c.t.Context(), c.pool, `
		SELECT table_name::text
		FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = current_schema() AND column_name = 'org' AND table_type = 'BASE TABLE'`)
	rows := map[string]int{}
	for _, name := range names {
		if err == nil {
			rows[name], err = db.One[int](c.t.Context(), c.pool, `SELECT count(*) FROM `+name+` WHERE org = $1`, org)
		}
	}
	if err == nil {
		rows["river_job"], err = db.One[int](c.t.Context(), c.pool, `
			SELECT count(*) FROM river_job WHERE (args ->> 'org')::integer = $1`, org)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return rows
}

// After an organization with data of every kind is deleted, no row is left in any table, and no job. Other
// organizations keep everything.
func TestDeletedOrganizationsLeaveNothing(t *testing.T) {
	t.Parallel()
	c := newElsewhereServerClient(t) // Clear works on all organizations
	c.work()
	alice, mallory := newTenant(c, "alice"), newTenant(c, "mallory")
	before := alice.state()
	filled := 0
	for _, rows := range c.orgTables(mallory.org) {
		filled += min(rows, 1)
	}
	if filled < 25 {
		t.Errorf("the tenant has rows in %d tables only: %v", filled, c.orgTables(mallory.org))
	}
	operator := c.operator()
	operator.must("DELETE", "/v1/admin/orgs?org_id="+mallory.has["org_id"], "")
	for remaining := 1; remaining > 0; {
		var err error
		if remaining, err = c.server.Keys.Clear(t.Context(), func(apikey.Organization, string, int) {}); err != nil {
			t.Fatal(err)
		}
	}
	for table, rows := range c.orgTables(mallory.org) {
		if rows > 0 {
			t.Errorf("%s has %d rows of the deleted organization", table, rows)
		}
	}
	if diff := cmp.Diff(before, alice.state()); diff != "" {
		t.Errorf("what alice has was changed (-before +after):\n%s", diff)
	}
}

// An administrator's settings apply to the organization that the operator names. Other administrators can name only
// their own organization.
func TestTheOperatorNamesTheOrganizationOfSettings(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}})
	acme := admin.keys("")[0].OrgID
	operator := c.operator()
	var own string
	for _, key := range operator.keys("?limit=1000") {
		if key.OrgID != acme {
			own = key.OrgID
		}
	}
	for path, change := range map[string][2]string{
		"/v1/admin/retention": {"PATCH", `{"prompts_days":5}`},
		"/v1/admin/policy":    {"PUT", `{"policy":"pi"}`},
	} {
		before := operator.must("GET", path, "")
		changed := operator.must(change[0], path+"?org_id="+acme, change[1])
		if current := operator.must("GET", path, ""); current != before || changed == before {
			t.Errorf("%s of another organization: got %s; the operator's own was %s and is %s", path, changed, before, current)
		}
		for _, got := range []string{admin.must("GET", path, ""), admin.must("GET", path+"?org_id="+acme, ""),
			operator.must("GET", path+"?org_id="+acme, "")} {
			if got != changed {
				t.Errorf("%s: got %s, want %s", path, got, changed)
			}
		}
		for _, call := range [][2]string{{"GET", ""}, change} {
			for id, want := range map[string]int{own: 404, "org-00000000-0000-4000-8000-000000000000": 404, "acme": 422} {
				if got := admin.call(call[0], path+"?org_id="+id, call[1]); got.Code != want {
					t.Errorf("%s %s of %s: got %d %s, want %d", call[0], path, id, got.Code, got.Text, want)
				}
			}
		}
	}
	const changes = "/v1/admin/policy/changes"
	list, ofAcme := operator.must("GET", changes, ""), operator.must("GET", changes+"?org_id="+acme, "")
	if list != "[]" ||
		!strings.Contains(ofAcme, `"pi"`) || admin.call("GET", changes+"?org_id="+own, "").Code != 404 {
		t.Errorf("the changes: got %s and of the other organization %s", list, ofAcme)
	}
	if got := operator.call("POST", "/v1/erasures?org_id="+acme, `{"texts":["Ann Lee"]}`); got.Code != 422 ||
		!strings.Contains(got.Text, "query.org_id") || operator.must("GET", "/v1/erasures", "") != "[]" {
		t.Errorf("an erasure of another organization: got %d %s", got.Code, got.Text)
	}
}
