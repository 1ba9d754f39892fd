package server_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Each filter of Letta's that nothing of Loci's can match selects nothing: a program that keeps to its own user's or
// project's things must not be given everyone's.
func TestFiltersThatNothingMatchesSelectNothing(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
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

func TestAMessageSearchKeepsToItsRoles(t *testing.T) {
	t.Parallel()
	c := newIdleClient(t)
	c.capture(c.made("/v1/agents", ""), `{"messages":[{"role":"user","content":"apple pie"},
		{"role":"assistant","content":"apple tart"}]}`)
	for roles, want := range map[string][]string{
		`["assistant"]`: {"assistant_message"}, `["user"]`: {"user_message"}, `["tool"]`: nil, `["system"]`: nil,
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
	if got := c.call("POST", "/v1/messages/search", `{"query":"apple","roles":["bogus"]}`); got.Code != 422 {
		t.Errorf("bogus: got %d %s", got.Code, got.Text)
	}
}
