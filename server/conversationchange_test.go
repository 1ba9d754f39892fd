package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A change of a conversation is stored completely or not at all. A null identity removes the conversation's identity.
func TestAConversationChangesWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	path := "/v1/conversations/" + c.made("/v1/conversations?agent_id="+agent, `{}`)
	identity := c.made("/v1/identities/", `{"identifier_key":"k","name":"Ann","identity_type":"user"}`)
	body := fmt.Sprintf(`{"identity_id":%q,"compaction_settings":{"policy":"pi"},"summary":%q}`, identity,
		strings.Repeat("x", 200<<10))
	if got := c.call("PATCH", path, body); got.Code != 400 {
		t.Fatalf("a long summary: got %d %.200s", got.Code, got.Text)
	}
	if got := fields(t, c.must("GET", path, "")); got["identity_id"] != nil || got["compaction_settings"] != nil {
		t.Errorf("a refused change changed %v, %v", got["identity_id"], got["compaction_settings"])
	}
	for _, body := range []string{fmt.Sprintf(`{"identity_id":%q}`, identity), `{"summary":"s"}`} {
		if got := fields(t, c.must("PATCH", path, body))["identity_id"]; got != identity {
			t.Errorf("%s: the identity is %v", body, got)
		}
	}
	if got := fields(t, c.must("PATCH", path, `{"identity_id":null}`))["identity_id"]; got != nil {
		t.Errorf("after null it is %v", got)
	}
}

// Simultaneous changes of different settings of a conversation are all stored.
func TestSettingsOfAConversationAreNotLost(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for range 10 {
		path := "/v1/conversations/" + c.made("/v1/conversations?agent_id="+agent, `{}`)
		var callers sync.WaitGroup
		for _, setting := range []string{`"trigger":0.8`, `"clip_chars":1000`, `"policy":"pi"`} {
			callers.Go(func() {
				if got := c.call("PATCH", path, `{"compaction_settings":{`+setting+`}}`); got.Code != 200 {
					t.Errorf("got %d %s", got.Code, got.Text)
				}
			})
		}
		callers.Wait()
		if got := fields(t, c.must("GET", path, ""))["compaction_settings"].(map[string]any); len(got) != 3 {
			t.Fatalf("of three settings are stored: %v", got)
		}
	}
}

// A preview uses the usual prices if the request has none. A preview with another policy does not begin a silent turn.
func TestPreviewsOfPoliciesReadTheirRequests(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.capture(agent, chatter(1, 8, "weather"))
	path := "/v1/agents/" + agent
	costs := func(prices string) string {
		body := `{"policies":["pi"],"prices":` + prices + `}`
		return pick(t, strings.Trim(c.must("POST", path+"/policies/preview", body), "[]\n"), "cost")
	}
	if got, want := costs(`{"input_per_million":3}`), costs(`null`); got != want {
		t.Errorf("one price: got %s, want %s", got, want)
	}
	if costs(`{"input_per_million":6}`) == costs(`{}`) {
		t.Error("the price makes no difference")
	}
	for _, w := range [][3]string{{"POST", path + "/policies/preview", `{"policies":["pi"],"at_seq":-1}`},
		{"POST", path + "/policies/preview", `{"policies":[]}`}, {"POST", path + "/policies/preview", `{}`},
		{"GET", path + "/prompt?policy=pi&accept=flush", ""}} {
		if got := c.call(w[0], w[1], w[2]); got.Code != 422 {
			t.Errorf("%v: got %d %.200s", w, got.Code, got.Text)
		}
	}
	child := fields(t, c.must("POST", path+"/children", `{"mode":"blank","task":"Count.","model":""}`))
	if got := fields(t, c.must("GET", fmt.Sprintf("/v1/agents/%v", child["agent_id"]), ""))["model"]; got != nil {
		t.Errorf("the model of a sub-agent that is given an empty one: %q", got)
	}
}
