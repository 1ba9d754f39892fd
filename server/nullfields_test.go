package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestNullIsNotGiven checks null in a PATCH of Letta's objects. As in Letta, null is the same as an absent field, and
// changes nothing. An agent's limits and sets are the exception: null restores their defaults.
func TestNullIsNotGiven(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	c.must("POST", "/v1/tools/", `{"json_schema":{"name":"lamp","parameters":{"type":"object","properties":{}}}}`)
	folder := c.made("/v1/folders", `{"name":"f","description":"d","instructions":"i","metadata":{"a":1}}`)
	archive := c.made("/v1/archives/", `{"name":"a","description":"d"}`)
	passage := c.made("/v1/archives/"+archive+"/passages", `{"text":"p","tags":["t"],"metadata":{"a":1}}`)
	block := c.made("/v1/blocks", `{"label":"l","value":"v","description":"d","limit":99,"tags":["t"],"metadata":{"a":1}}`)
	identity := c.made("/v1/identities/", `{"identifier_key":"k","name":"n","identity_type":"user",
		"properties":[{"key":"a","value":"b","type":"string"}]}`)
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"n","description":"d","system":"s","timezone":"Europe/Berlin",
		"tags":["t"],"metadata":{"a":1},"block_ids":[%q],"folder_ids":[%q],"identity_ids":[%q],"tools":["lamp"],
		"model":"openai/m","embedding":"openai/e","context_window_limit":9000,"model_settings":{"provider_type":"openai",
		"temperature":0.5},"tool_rules":[{"type":"exit_loop","tool_name":"lamp"}],"compaction_settings":{"mode":"all"},
		"per_file_view_window_char_limit":5000,"max_files_open":3}`, block, folder,
		identity))
	var tools []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/tools/?name=lamp", "")), &tools); err != nil || len(tools) == 0 {
		t.Fatal(err, tools)
	}
	c.must("PATCH", "/v1/agents/"+agent+"/archives/attach/"+archive, "")
	defaults := map[string][]string{
		"context_window_limit":            {"context_window_limit", "llm_config", "tools"},
		"max_files_open":                  {"max_files_open", "tools"}, // their descriptions state it
		"per_file_view_window_char_limit": {"per_file_view_window_char_limit", "tools"}, "tool_set": {"tool_set", "tools"}}
	for route, path := range map[string]string{
		"/v1/agents/{agent_id}":                             "/v1/agents/" + agent,
		"/v1/blocks/{block_id}":                             "/v1/blocks/" + block,
		"/v1/folders/{folder_id}":                           "/v1/folders/" + folder,
		"/v1/archives/{archive_id}":                         "/v1/archives/" + archive,
		"/v1/agents/{agent_id}/archival-memory/{memory_id}": "/v1/agents/" + agent + "/archival-memory/" + passage,
		"/v1/identities/{identity_id}":                      "/v1/identities/" + identity,
		"/v1/tools/{tool_id}":                               "/v1/tools/" + tools[0].ID,
	} {
		for _, field := range c.fieldsOf("patch", route) {
			before := fields(t, c.must("PATCH", path, `{}`))
			got := c.call("PATCH", path, `{"`+field+`":null}`)
			if got.Code != 200 {
				t.Errorf("%s: %s: null: %d %s", route, field, got.Code, got.Text)
				continue
			}
			after := fields(t, got.Text)
			changed := slices.DeleteFunc(slices.Sorted(maps.Keys(after)), func(name string) bool {
				return strings.HasPrefix(name, "updated_") || reflect.DeepEqual(before[name], after[name])
			})
			if !slices.Equal(changed, defaults[field]) {
				t.Errorf("%s: %s: null changed %v, want %v", route, field, changed, defaults[field])
			}
		}
	}
}

// fieldsOf returns the field names of a route's body.
func (c *client) fieldsOf(method, route string) []string {
	c.t.Helper()
	document := fields(c.t, c.must("GET", "/openapi.json", ""))
	lookup := func(v any, path ...string) any {
		for _, name := range path {
			m, _ := v.(map[string]any)
			if v = m[name]; v == nil {
				return nil
			}
		}
		return v
	}
	schema := lookup(document, "paths", route, method, "requestBody", "content", "application/json", "schema")
	if ref, ok := lookup(schema, "$ref").(string); ok {
		schema = lookup(document, append([]string{}, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)...)
	}
	properties, _ := lookup(schema, "properties").(map[string]any)
	if len(properties) == 0 {
		c.t.Fatalf("%s %s has no fields in the document", method, route)
	}
	return slices.Sorted(maps.Keys(properties))
}
