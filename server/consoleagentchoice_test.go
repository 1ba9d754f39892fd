package server_test

import (
	"strings"
	"testing"
)

// An agent can be named by its name or its id, even among many agents.
func TestTheConsoleTakesNamesOfAgents(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	alice := newTenant(c, "alice")
	helper := alice.made("/v1/agents", `{"name":"travel helper"}`)
	for range 30 { // more than the console proposes
		alice.made("/v1/agents", `{"name":"twin"}`)
	}
	for _, row := range []struct{ target, want string }{
		{"/console/policies?card=policies-preview&agent=travel+helper", "Nothing is stored, and no model is asked"},
		{"/console/policies?card=policies-preview&agent=" + helper, "Nothing is stored, and no model is asked"},
		{"/console/search?card=search-lab&in=all&q=x&agent=travel+helper", `aria-label="Ranked by`},
		{"/console/search?card=search-lab&in=grep&q=x&agent=" + helper, "The tool grep_files is not attached to you"},
		{"/console/search?card=search-lab&in=passages&q=x&agent=travel+helper", `aria-label="Fused"`},
		{"/console/policies?card=policies-preview&agent=nobody", `role="alert">No agent has the name &#34;nobody&#34;.`},
		{"/console/search?card=search-lab&in=all&q=x&agent=nobody", `role="alert">No agent has the name &#34;nobody&#34;.`},
		{"/console/search?card=search-lab&q=x&agent=twin",
			`role="alert">Several agents have the name &#34;twin&#34;: give the id of one.`},
	} {
		got := alice.browse("GET", row.target, nil)
		failed := strings.Contains(got.Text, `role="alert"`) != strings.Contains(row.want, "alert")
		if got.Code != 200 || failed || !strings.Contains(got.Text, row.want) ||
			!strings.Contains(got.Text, `<input type="search" name="agent"`) {
			t.Errorf("%s: got %d, want %s in %.6000s", row.target, got.Code, row.want, got.Text)
		}
	}
}
