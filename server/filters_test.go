package server_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// If a filter of Letta's cannot match anything in Loci, it selects nothing. A program that filters by user or project
// must not get everyone's data.
func TestFiltersThatNothingMatchesSelectNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"memory_blocks":[{"label":"human","value":"v"}],"tags":["t"]}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"the blue sea"}]}`)
	c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"the blue sea"}`)
	const ids, sea = "identity_id identifier_keys", `"query":"sea"`
	for _, row := range []struct{ method, path, body, names string }{
		{"GET", "/v1/agents", "", ids + " project_id template_id base_template_id deployment_id entity_id created_by_id " +
			"last_stop_reason"},
		{"GET", "/v1/agents/count", "", ids + " project_id template_id base_template_id created_by_id last_stop_reason"},
		{"GET", "/v1/blocks", "", ids + " project_id template_id base_template_id deployment_id created_by_id"},
		{"GET", "/v1/blocks/count", "", ids + " project_id template_id base_template_id created_by_id"},
		{"GET", "/v1/tools", "", "project_id created_by_id"},
		{"GET", "/v1/tools/count", "", "project_id created_by_id"},
		{"POST", "/v1/agents/messages/search", sea, "project_id template_id"},
		{"POST", "/v1/messages/search", sea, "project_id template_id"},
		{"POST", "/v1/passages/search", sea, "project_id template_id"},
	} {
		all := c.must(row.method, row.path, "{"+row.body+"}")
		if all == "[]" || all == "0" {
			t.Errorf("%s %s: nothing without a filter", row.method, row.path)
		}
		for name := range strings.FieldsSeq(row.names) {
			path, body := row.path+"?"+url.Values{name: {"x-1"}}.Encode(), ""
			if row.method == "POST" {
				path, body = row.path, "{"+row.body+`,"`+name+`":"x-1"}`
			}
			if got := c.must(row.method, path, body); got != "[]" && got != "0" {
				t.Errorf("%s %s %s: got %.80s", row.method, path, body, got)
			}
		}
		if got := c.must(row.method, row.path+"?project_id=&identity_id=", "{"+row.body+"}"); got != all {
			t.Errorf("%s %s with empty filters: got %.80s", row.method, row.path, got)
		}
	}
}

// A filter in an unreadable query would be ignored, and everything would be selected.
func TestBrokenQueriesAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, query := range []string{"name=x;y", "identity_id=z;y=1", "name=%zz", "limit=1&name=%"} {
		if got := c.call("GET", "/v1/agents?"+query, ""); got.Code != 400 || !strings.Contains(got.Text, "%3B") {
			t.Errorf("%s: got %d %s", query, got.Code, got.Text)
		}
	}
	c.must("GET", "/v1/agents?name=x%3By&", "")
}

func TestAMessageSearchKeepsToItsRoles(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.capture(c.made("/v1/agents", ""), `{"messages":[{"role":"user","content":"apple pie"},
		{"role":"assistant","content":"apple tart"}]}`)
	for roles, want := range map[string][]string{
		`["assistant"]`: {"assistant_message"}, `["user"]`: {"user_message"},
		`[]`: {"assistant_message", "user_message"}, `null`: {"assistant_message", "user_message"},
	} {
		var got []string
		var found []map[string]any
		reply := c.must("POST", "/v1/messages/search", `{"query":"apple","roles":`+roles+`}`)
		if err := json.Unmarshal([]byte(reply), &found); err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			got = append(got, m["message_type"].(string))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", roles, got, want)
		}
	}
	for _, roles := range []string{`["bogus"]`, `["user","tool"]`, `["system"]`, `["function"]`} {
		got := c.call("POST", "/v1/messages/search", `{"query":"apple","roles":`+roles+`}`)
		if got.Code != 422 || roles != `["bogus"]` && !strings.Contains(got.Text, "POST /v1/agents/messages/search") {
			t.Errorf("%s: got %d %s, want 422 that names the route for it", roles, got.Code, got.Text)
		}
	}
	for _, roles := range []string{`["function"]`, `["approval"]`, `["tool"]`} {
		if got := c.must("POST", "/v1/agents/messages/search", `{"query":"apple","roles":`+roles+`}`); got != "[]" {
			t.Errorf("%s: got %s, want nothing", roles, got)
		}
	}
}

// A request for an agent's conversation does not find another agent's default conversation.
func TestAnotherAgentsConversationIsNotFound(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id, other := c.made("/v1/agents", ""), c.made("/v1/agents", "")
	agent := "/v1/agents/" + id
	c.capture(id, `{"messages":[{"role":"user","content":"Hello."}]}`)
	for _, route := range []string{"messages", "prompt", "context", "compactions"} {
		if got := c.call("GET", agent+"/"+route+"?conversation_id="+other, ""); got.Code != 404 {
			t.Errorf("%s: got %d %.80s, want 404", route, got.Code, got.Text)
		}
		c.must("GET", agent+"/"+route+"?conversation_id="+id, "")
	}
}

func TestTimezonesAndTagsAreChecked(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	target := "/v1/agents/" + c.made("/v1/agents", `{"timezone":"Europe/Berlin"}`)
	block := "/v1/blocks/" + c.made("/v1/blocks", `{"label":"a","value":"v"}`)
	for _, zone := range []string{"Nope/Zone", "../../etc/passwd", "Local", strings.Repeat("x", 5000), "europe/berlin "} {
		for method, path := range map[string]string{"POST": "/v1/agents", "PATCH": target} {
			if got := c.call(method, path, `{"timezone":"`+zone+`"}`); got.Code != 422 {
				t.Errorf("%s %.20q: got %d %.80s, want 422", method, zone, got.Code, got.Text)
			}
		}
	}
	for _, zone := range []string{"UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5"} {
		c.must("PATCH", target, `{"timezone":"`+zone+`"}`)
	}
	tags := `"tags":["` + strings.Repeat("t", 201) + `"]`
	for path, method := range map[string]string{
		"/v1/agents": "POST", target: "PATCH", "/v1/blocks": "POST", block: "PATCH",
	} {
		if got := c.call(method, path, `{"label":"b","value":"v",`+tags+`}`); got.Code != 400 && got.Code != 422 {
			t.Errorf("%s %s: got %d for a tag of 201 characters", method, path, got.Code)
		}
	}
}
