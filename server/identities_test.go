package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/google/go-cmp/cmp"
)

// ids returns the ids of a list's items, sorted.
func (c *client) ids(target string) []string {
	c.t.Helper()
	var items []struct{ ID string }
	if err := json.Unmarshal([]byte(c.must("GET", target, "")), &items); err != nil {
		c.t.Fatal(err)
	}
	ids := []string{}
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestIdentitiesAreKept(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, block := c.made("/v1/agents", ""), c.made("/v1/blocks", `{"label":"a","value":"v"}`)
	body := `{"identifier_key":"u-1","name":"Ada","identity_type":"user","agent_ids":[%q],"block_ids":[%q],"properties":
		[{"key":"plan","value":"free","type":"string"}]}`
	id := c.made("/v1/identities", fmt.Sprintf(body, agent, block))
	path := "/v1/identities/" + id
	check := func(after, want string) {
		t.Helper()
		if diff := cmp.Diff(fields(t, want), fields(t, c.must("GET", path, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", after, diff)
		}
	}
	shown := `{"id":"` + id + `","identifier_key":"u-1","name":"Ada","identity_type":"user",` +
		`"project_id":null,"made_by":null,"changed_by":null,`
	check("created", shown+fmt.Sprintf(`"agent_ids":[%q],"block_ids":[%q],"properties":[{"key":"plan","value":"free",
		"type":"string"}]}`, agent, block))
	other := c.made("/v1/agents", "")
	both := []string{agent, other}
	slices.Sort(both)
	list, _ := json.Marshal(both)
	c.must("PATCH", path, fmt.Sprintf(`{"agent_ids":[%q],"properties":[{"key":"age","value":3,"type":"number"}]}`, other))
	check("added", shown+`"agent_ids":`+string(list)+`,"block_ids":["`+block+`"],"properties":[{"key":"plan","value":
		"free","type":"string"},{"key":"age","value":3,"type":"number"}]}`)
	c.must("PUT", path+"/properties", `[{"key":"ok","value":true,"type":"boolean"}]`)
	replaced := fields(t, c.must("PUT", "/v1/identities", fmt.Sprintf(`{"identifier_key":"u-1","name":"Ada",
		"identity_type":"user","agent_ids":[%q]}`, other)))
	if replaced["id"] != id {
		t.Errorf("an upsert made %v", replaced)
	}
	check("replaced", shown+`"agent_ids":["`+other+`"],"block_ids":["`+block+`"],"properties":[{"key":"ok","value":true,
		"type":"boolean"}]}`)
	c.must("DELETE", "/v1/blocks/"+block, "")
	c.must("DELETE", "/v1/agents/"+other, "")
	check("without what is deleted", shown+`"agent_ids":[],"block_ids":[],"properties":[{"key":"ok","value":true,
		"type":"boolean"}]}`)
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "", fmt.Sprintf(body, agent, block), 409},
		{"POST", "", `{"identifier_key":"u-2","name":"x","identity_type":"user","agent_ids":["agent-x"]}`, 404},
		{"POST", "", `{"identifier_key":"","name":"x","identity_type":"user"}`, 400},
		{"PUT", "", `{"identifier_key":"","name":"x","identity_type":"user"}`, 400},
		{"POST", "", `{"identifier_key":"u-2","name":"x","identity_type":"robot"}`, 422},
		{"GET", "/x", "", 422}, {"GET", "/identity-123e4567-e89b-42d3-8456-426614174000", "", 404},
	} {
		if got := c.call(tt.method, "/v1/identities"+tt.path, tt.body); got.Code != tt.status {
			t.Errorf("%s %s %s: got %d %s, want %d", tt.method, tt.path, tt.body, got.Code, got.Text, tt.status)
		}
	}
	for range 120 {
		c.made("/v1/identities", `{"identifier_key":"k`+fmt.Sprint(len(c.ids("/v1/identities?limit=1000")))+`","name":"many",
			"identity_type":"org"}`)
	}
	for query, want := range map[string]string{"": "121", "identity_type=org": "120", "name=AD": "1",
		"identifier_key=k5": "1"} {
		if got := c.must("GET", "/v1/identities/count?"+query, ""); got != want {
			t.Errorf("%s: counted %s, want %s", query, got, want)
		}
		if n := len(c.ids("/v1/identities?limit=1000&" + query)); fmt.Sprint(n) != want {
			t.Errorf("%s: listed %d, want %s", query, n, want)
		}
	}
	c.must("DELETE", path, "")
	if got := c.call("GET", path, ""); got.Code != 404 {
		t.Errorf("deleted: got %d", got.Code)
	}
}

func TestIdentitiesFilter(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	made := func(key string) string {
		return c.made("/v1/identities", `{"identifier_key":"`+key+`","name":"n","identity_type":"user"}`)
	}
	ada, bob := made("ada"), made("bob & co")
	hers := c.made("/v1/agents", `{"identity_ids":["`+ada+`"]}`)
	his := c.made("/v1/agents", `{"tags":["x"]}`)
	c.made("/v1/agents", "")
	block := c.made("/v1/blocks", `{"label":"a","value":"v"}`)
	c.made("/v1/blocks", `{"label":"b","value":"v"}`)
	for range 2 { // the second time changes nothing
		if got := c.must("PATCH", "/v1/agents/"+his+"/identities/attach/"+bob, ""); got != "null" {
			t.Errorf("attached: got %s", got)
		}
		c.must("PATCH", "/v1/blocks/"+block+"/identities/attach/"+bob, "")
	}
	state := fields(t, c.must("GET", "/v1/agents/"+hers, ""))
	if ids := fmt.Sprint(state["identity_ids"]); ids != "["+ada+"]" || len(state["identities"].([]any)) != 1 {
		t.Errorf("the agent shows %s and %v", ids, state["identities"])
	}
	check := func(list, query string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if diff := cmp.Diff(want, c.ids(list+"?"+query)); diff != "" {
			t.Errorf("%s?%s (-want +got):\n%s", list, query, diff)
		}
		if n := c.must("GET", list+"/count?"+query, ""); n != fmt.Sprint(len(want)) {
			t.Errorf("%s/count?%s: got %s", list, query, n)
		}
	}
	keys := "identifier_keys=" + url.QueryEscape("bob & co")
	check("/v1/agents", "identity_id="+ada, hers)
	check("/v1/agents", keys, his)
	check("/v1/agents", keys+"&identifier_keys=ada", hers, his)
	check("/v1/agents", keys+"&tags=x&identity_id="+bob, his)
	check("/v1/blocks", keys, block)
	check("/v1/blocks", "identity_id="+bob, block)
	if got := c.must("GET", "/v1/agents?"+keys+"&identity_id="+ada, ""); got != "[]" {
		t.Errorf("both filters: got %.80s", got)
	}
	for _, query := range []string{"identity_id=identity-x", "identifier_keys=nobody"} {
		for _, list := range []string{"/v1/agents", "/v1/blocks", "/v1/tools"} {
			if got := c.must("GET", list+"?"+query, ""); got != "[]" {
				t.Errorf("%s?%s: got %.80s", list, query, got)
			}
		}
	}
	if diff := cmp.Diff([]string{his}, c.ids("/v1/identities/"+bob+"/agents")); diff != "" {
		t.Errorf("agents of an identity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{block}, c.ids("/v1/identities/"+bob+"/blocks")); diff != "" {
		t.Errorf("blocks of an identity (-want +got):\n%s", diff)
	}
	c.must("PATCH", "/v1/agents/"+hers, `{"identity_ids":["`+bob+`"]}`)
	c.must("PATCH", "/v1/agents/"+his+"/identities/detach/"+bob, "")
	c.must("PATCH", "/v1/agents/"+his+"/identities/detach/"+bob, "")
	c.must("PATCH", "/v1/blocks/"+block+"/identities/detach/"+bob, "")
	if got := c.ids("/v1/agents?" + keys); !slices.Equal(got, []string{hers}) {
		t.Errorf("after a change: got %v", got)
	}
	if got := c.must("GET", "/v1/blocks?"+keys, ""); got != "[]" {
		t.Errorf("after a detachment: got %s", got)
	}
	c.must("PATCH", "/v1/agents/"+hers, `{"description":"d"}`)
	c.must("PATCH", "/v1/agents/"+hers, `{"identity_ids":[]}`)
	if got := c.must("GET", "/v1/agents?"+keys, ""); got != "[]" {
		t.Errorf("after an empty list: got %s", got)
	}
}

// If several clients start together, all of them can upsert their user's identity.
func TestIdentitiesAreUpsertedAtOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	var all errgroup.Group
	for range 6 {
		all.Go(func() error {
			got := c.call("PUT", "/v1/identities", `{"identifier_key":"k","name":"x","identity_type":"user"}`)
			if got.Code != 200 {
				return fmt.Errorf("got %d %s", got.Code, got.Text)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if n := len(c.ids("/v1/identities")); n != 1 {
		t.Errorf("there are %d identities", n)
	}
}
