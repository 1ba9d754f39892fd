package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settings returns what an agent shows of its model settings: model_settings, and the fields of llm_config that are
// set.
func (c *client) settings(agent string) (shown map[string]any, config map[string]any) {
	c.t.Helper()
	got := fields(c.t, c.must("GET", "/v1/agents/"+agent, ""))
	shown, _ = got["model_settings"].(map[string]any)
	config = got["llm_config"].(map[string]any)
	for name, value := range config {
		if value == nil || strings.HasPrefix(name, "model") || name == "handle" || name == "context_window" {
			delete(config, name)
		}
	}
	return shown, config
}

// object decodes JSON.
func object(t *testing.T, text string) (read map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("read %s: %v", text, err)
	}
	return read
}

func TestModelSettingsAreKeptAndMerged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents/", `{"name":"a","model":"anthropic/claude-sonnet-4-5","max_tokens":900,"reasoning":true,
		"max_reasoning_tokens":2048,"parallel_tool_calls":true,"model_settings":{"temperature":0.5,"effort":null}}`)
	want := `{"provider_type":"anthropic","max_output_tokens":900,"temperature":0.5,"parallel_tool_calls":true}`
	config := `{"max_tokens":900,"temperature":0.5,"parallel_tool_calls":true,"enable_reasoner":true,
		"max_reasoning_tokens":2048}`
	check := func(name, body string) {
		t.Helper()
		shown, configured := c.settings(agent)
		if diff := cmp.Diff(object(t, want), shown); diff != "" {
			t.Errorf("%s: %s: model_settings (-want +got):\n%s", name, body, diff)
		}
		if diff := cmp.Diff(object(t, config), configured); diff != "" {
			t.Errorf("%s: %s: llm_config (-want +got):\n%s", name, body, diff)
		}
	}
	check("created", "")
	for _, step := range []struct{ name, body, want, config string }{
		{"nothing changes nothing", `{"model_settings":null,"parallel_tool_calls":null,"llm_config":null,"reasoning":null}`,
			want, config},
		{"settings are merged", `{"model_settings":{"thinking":{"type":"enabled","budget_tokens":1500}}}`,
			`{"provider_type":"anthropic","max_output_tokens":900,"temperature":0.5,"parallel_tool_calls":true,
			"thinking":{"type":"enabled","budget_tokens":1500}}`, config},
		{"null unsets a setting", `{"model_settings":{"thinking":null,"temperature":null}}`,
			`{"provider_type":"anthropic","max_output_tokens":900,"parallel_tool_calls":true}`,
			`{"max_tokens":900,"parallel_tool_calls":true,"enable_reasoner":true,"max_reasoning_tokens":2048}`},
		{"null of max_tokens unsets it", `{"max_tokens":null}`, `{"provider_type":"anthropic","parallel_tool_calls":true}`,
			`{"parallel_tool_calls":true,"enable_reasoner":true,"max_reasoning_tokens":2048}`},
		{"a whole configuration", `{"llm_config":{"model":"gpt-5","model_endpoint_type":"openai","context_window":9000,
			"max_tokens":800,"temperature":1,"enable_reasoner":false,"max_reasoning_tokens":0,"reasoning_effort":"low",
			"frequency_penalty":null,"put_inner_thoughts_in_kwargs":false,"tier":null,"strict":false}}`,
			`{"provider_type":"openai","max_output_tokens":800,"temperature":1,"parallel_tool_calls":true,"strict":false,
			"reasoning":{"reasoning_effort":"low"}}`,
			`{"max_tokens":800,"temperature":1,"parallel_tool_calls":true,"enable_reasoner":false,"strict":false,
			"max_reasoning_tokens":0,"reasoning_effort":"low"}`},
		{"the last word", `{"parallel_tool_calls":false,"model_settings":{"parallel_tool_calls":true,"strict":null,
			"max_output_tokens":null,"reasoning":null,"temperature":null,"provider_type":"azure"}}`,
			`{"provider_type":"azure","parallel_tool_calls":false}`,
			`{"parallel_tool_calls":false,"enable_reasoner":false,"max_reasoning_tokens":0}`},
	} {
		if got := c.must("PATCH", "/v1/agents/"+agent, step.body); strings.Contains(got, `"warnings"`) {
			t.Errorf("%s: got %s, want no warning", step.name, got)
		}
		want, config = step.want, step.config
		check(step.name, step.body)
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"model_settings":{"parallel_tool_calls":null,"provider_type":null}}`)
	list := c.must("GET", "/v1/agents", "")
	if shown, _ := c.settings(agent); shown != nil || strings.Contains(list, `"model_settings"`) {
		t.Errorf("settings that are all unset: got %v, want none", shown)
	}
	got := c.must("POST", "/v1/agents", `{"model_settings":{"max_tokns":5}}`)
	if !strings.Contains(got, `\"model_settings.max_tokns\"; did you mean max_output_tokens?`) ||
		strings.Contains(got, `"model_settings":`) {
		t.Errorf("a misspelt setting: got %s", got)
	}
}

func TestModelSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	for _, r := range []struct{ field, value, rule string }{
		{"max_tokens", `0`, `expected number >= 1`},
		{"max_reasoning_tokens", `-1`, `expected number >= 0`},
		{"model_settings", `[]`, `expected object`},
		{"model_settings.max_output_tokens", `-1`, `expected number >= 1`},
		{"model_settings.max_output_tokens", `1e10`, `expected number <= 2147483647`},
		{"model_settings.temperature", `2.5`, `expected number <= 2. Got: 2.5`},
		{"model_settings.temperature", `"hot"`, `expected number. Got: "hot"`},
		{"model_settings.frequency_penalty", `-3`, `expected number >= -2`},
		{"model_settings.reasoning.reasoning_effort", `"x"`, `expected value to be one of`},
		{"model_settings.thinking.type", `"on"`, `expected value to be one of`},
		{"model_settings.thinking.budget_tokens", `-1`, `expected number >= 0`},
		{"model_settings.verbosity", `"some"`, `expected value to be one of`},
		{"model_settings.parallel_tool_calls", `1`, `expected boolean`},
		{"llm_config.temperature", `-1`, `expected number >= 0. Got: -1`},
		{"llm_config.max_tokens", `0.5`, `expected integer`},
	} {
		names := strings.Split(r.field, ".")
		body := `{"` + strings.Join(names, `":{"`) + `":` + r.value + strings.Repeat("}", len(names))
		detail := "body." + r.field + ": " + r.rule
		targets := map[string]string{"/v1/agents": "POST", "/v1/agents/" + agent: "PATCH"}
		if strings.HasPrefix(body, `{"model_settings"`) {
			targets["/v1/conversations?agent_id="+agent], targets["/v1/conversations/"+conversation] = "POST", "PATCH"
		}
		for target, method := range targets {
			got := c.call(method, target, body)
			if said, _ := fields(t, got.Text)["detail"].(string); got.Code != 422 || !strings.Contains(said, detail) {
				t.Errorf("%s %s %s: got %d %s, want 422 %q", method, target, body, got.Code, got.Text, detail)
			}
		}
	}
}

func TestThinkingIsShorterThanTheAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	conversation := c.made("/v1/conversations?agent_id="+agent, "")
	for target, method := range map[string]string{"/v1/agents": "POST", "/v1/agents/" + agent: "PATCH",
		"/v1/conversations?agent_id=" + agent: "POST", "/v1/conversations/" + conversation: "PATCH"} {
		for budget, want := range map[int]int{2000: 422, 1999: 200} {
			body := fmt.Sprintf(`{"model_settings":{"max_output_tokens":2000,"thinking":{"type":"enabled",`+
				`"budget_tokens":%d}}}`, budget)
			got := c.call(method, target, body)
			detail := "body.model_settings.thinking.budget_tokens: expected less than max_output_tokens, 2000. Got: 2000"
			if got.Code != want || want == 422 && !strings.Contains(got.Text, detail) {
				t.Errorf("%s %s %s: got %d %s, want %d", method, target, body, got.Code, got.Text, want)
			}
		}
	}
}

// handedOver returns a prompt's request without messages and tools, and the settings that were left out of it.
func (c *client) handedOver(target string) (request map[string]any, leftOut any) {
	c.t.Helper()
	got := fields(c.t, c.must("GET", target, ""))
	request = got["request"].(map[string]any)
	for _, name := range []string{"messages", "tools", "system"} {
		delete(request, name)
	}
	return request, got["settings_left_out"]
}

func TestModelSettingsAreHandedOut(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, a := range []struct{ name, body, format, want, leftOut string }{
		{"nothing set", `{"model":"openai/gpt-5"}`, "openai", `{"model":"gpt-5"}`, `null`},
		{"nothing set, of no model", `{}`, "anthropic", `{}`, `null`},
		{"OpenAI's names", `{"model":"openai/gpt-5-mini","max_tokens":500,"parallel_tool_calls":false,"model_settings":{
			"send_all":true,"temperature":0,"reasoning":{"reasoning_effort":"low"},"verbosity":"low","frequency_penalty":0.5,
			"response_format":{"type":"json_object"}}}`, "openai",
			`{"model":"gpt-5-mini","max_completion_tokens":500,"parallel_tool_calls":false,"temperature":0,
			"reasoning_effort":"low","verbosity":"low","frequency_penalty":0.5,"response_format":{"type":"json_object"}}`,
			`null`},
		{"what gpt-4o refuses", `{"model":"openai/gpt-4o-mini","model_settings":{"provider_type":"openai","temperature":0.25,
			"reasoning":{"reasoning_effort":"high"},"verbosity":"low"}}`, "openai",
			`{"model":"gpt-4o-mini","temperature":0.25}`, `["reasoning","verbosity"]`},
		{"what gpt-5 refuses", `{"model":"openai/gpt-5","model_settings":{"temperature":1,"frequency_penalty":0,
			"reasoning":{"reasoning_effort":"high"},"verbosity":"low","parallel_tool_calls":true}}`, "openai",
			`{"model":"gpt-5","reasoning_effort":"high","verbosity":"low","parallel_tool_calls":true}`,
			`["frequency_penalty","temperature"]`},
		{"what o3 refuses", `{"model":"openai/o3-mini","model_settings":{"temperature":1,"verbosity":"low",
			"reasoning":{"reasoning_effort":"low"},"parallel_tool_calls":true}}`, "openai",
			`{"model":"o3-mini","reasoning_effort":"low"}`, `["parallel_tool_calls","temperature","verbosity"]`},
		{"what an older Claude refuses", `{"model":"anthropic/claude-3-5-haiku","model_settings":{"effort":"low",
			"thinking":{"type":"enabled","budget_tokens":2000},"temperature":0.5}}`, "anthropic",
			`{"model":"claude-3-5-haiku","temperature":0.5}`, `["effort","thinking"]`},
		{"what Claude 4.5 refuses", `{"model":"anthropic/claude-sonnet-4-5","model_settings":{"effort":"low"}}`,
			"anthropic", `{"model":"claude-sonnet-4-5"}`, `["effort"]`},
		{"the limit's older name", `{"model":"acme/large","max_tokens":500,"response_format":{"type":"text"}}`, "openai",
			`{"model":"large","max_tokens":500,"response_format":{"type":"text"}}`, `null`},
		{"calls of no tools", `{"parallel_tool_calls":false,"tools":[],"include_base_tools":false,"model":"a/b"}`, "openai",
			`{"model":"b"}`, `["parallel_tool_calls"]`},
		{"what OpenAI has no name for", `{"model":"a/b","reasoning":false,"model_settings":{"strict":true,"effort":"low",
			"thinking":{"type":"enabled","budget_tokens":2000},"temperature":1.5}}`, "openai",
			`{"model":"b","temperature":1.5}`, `["effort","enable_reasoner","strict","thinking"]`},
		{"Anthropic's names", `{"model":"anthropic/claude-opus-4-5","max_tokens":2500,"parallel_tool_calls":false,
			"model_settings":{"temperature":1,"effort":"high","thinking":{"type":"enabled","budget_tokens":2000}}}`,
			"anthropic", `{"model":"claude-opus-4-5","max_tokens":2500,"temperature":1,"output_config":{"effort":"high"},
			"thinking":{"type":"enabled","budget_tokens":2000},
			"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, `null`},
		{"thinking of older clients", `{"model":"a/b","enable_reasoner":true,"max_reasoning_tokens":3000}`, "anthropic",
			`{"model":"b","thinking":{"type":"enabled","budget_tokens":3000}}`, `null`},
		{"thinking as long as the answer", `{"model":"a/b","max_tokens":3000,"enable_reasoner":true,
			"max_reasoning_tokens":3000}`, "anthropic", `{"model":"b","max_tokens":3000}`,
			`["enable_reasoner","max_reasoning_tokens"]`},
		{"thinking that is raised to the answer's length", `{"model":"a/b","model_settings":{"max_output_tokens":1024,
			"thinking":{"type":"enabled","budget_tokens":500},"temperature":0.5}}`, "anthropic",
			`{"model":"b","max_tokens":1024,"temperature":0.5}`, `["thinking"]`},
		{"thinking of no length", `{"model":"a/b","reasoning":true}`, "anthropic", `{"model":"b"}`,
			`["enable_reasoner"]`},
		{"no thinking", `{"model":"a/b","enable_reasoner":false,"max_reasoning_tokens":0}`, "anthropic", `{"model":"b"}`,
			`null`},
		{"what Anthropic has no name for", `{"model":"a/b","response_format":{"type":"json_object"},"model_settings":{
			"verbosity":"low","reasoning":{"reasoning_effort":"low"},"temperature":1.5,"thinking":{"type":"disabled"}}}`,
			"anthropic", `{"model":"b","thinking":{"type":"disabled"}}`,
			`["reasoning","response_format","temperature","verbosity"]`},
	} {
		base := a.body
		if !strings.Contains(base, `"tools"`) {
			base = strings.TrimSuffix(base, "}") + `,"tool_set":"small"}`
			base = strings.Replace(base, "{,", "{", 1)
		}
		agent := c.made("/v1/agents", base)
		c.greet(agent, "default")
		request, leftOut := c.handedOver("/v1/agents/" + agent + "/prompt?format=" + a.format)
		var wantLeft any
		if err := json.Unmarshal([]byte(a.leftOut), &wantLeft); err != nil {
			t.Fatal(err)
		}
		if _, keyed := request["prompt_cache_key"]; keyed != strings.Contains(base, "openai/") {
			t.Errorf("%s: the request has a key for a cache: %t", a.name, keyed)
		}
		delete(request, "prompt_cache_key")
		if diff := cmp.Diff(object(t, a.want), request); diff != "" {
			t.Errorf("%s: the request (-want +got):\n%s", a.name, diff)
		}
		if diff := cmp.Diff(wantLeft, leftOut); diff != "" {
			t.Errorf("%s: left out (-want +got):\n%s", a.name, diff)
		}
	}
}

// A conversation's settings take precedence over its agent's, unless the conversation has its own model.
func TestAConversationHasModelSettings(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"model":"acme/large","max_tokens":500,"model_settings":{"temperature":0.1}}`)
	id := c.made("/v1/conversations?agent_id="+agent, `{"model_settings":{"temperature":0.2,"strict":null}}`)
	for _, step := range []struct{ name, body, stored, want string }{
		{"created", `{}`, `{"temperature":0.2}`, `{"model":"large","max_tokens":500,"temperature":0.2}`},
		{"merged", `{"model_settings":{"max_output_tokens":9}}`, `{"temperature":0.2,"max_output_tokens":9}`,
			`{"model":"large","max_tokens":9,"temperature":0.2}`},
		{"unset", `{"model_settings":{"max_output_tokens":null}}`, `{"temperature":0.2}`,
			`{"model":"large","max_tokens":500,"temperature":0.2}`},
		{"a model of its own", `{"model":"acme/small"}`, `{"temperature":0.2}`, `{"model":"small","temperature":0.2}`},
		{"all unset", `{"model_settings":{"temperature":null}}`, `null`, `{"model":"small"}`},
	} {
		c.must("PATCH", "/v1/conversations/"+id, step.body)
		for _, list := range []map[string]any{fields(t, c.must("GET", "/v1/conversations/"+id, "")),
			c.list("/v1/conversations?agent_id=" + agent)[0]} {
			stored, _ := list["model_settings"].(map[string]any)
			if !cmp.Equal(stored, object(t, step.stored)) {
				t.Errorf("%s: got %v, want %s", step.name, stored, step.stored)
			}
		}
		c.greet(agent, id)
		request, _ := c.handedOver("/v1/agents/" + agent + "/prompt?format=openai&conversation_id=" + id)
		if diff := cmp.Diff(object(t, step.want), request); diff != "" {
			t.Errorf("%s: the request (-want +got):\n%s", step.name, diff)
		}
	}
}
