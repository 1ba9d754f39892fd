package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/server/servertest"
)

const someAgent = "/v1/agents/agent-123e4567-e89b-42d3-8456-426614174000"

// pick returns some fields of an object as JSON.
func pick(t *testing.T, body string, names ...string) string {
	t.Helper()
	object, picked := fields(t, body), map[string]any{}
	for _, name := range names {
		value, ok := object[name]
		if !ok {
			t.Errorf("there is no %s in %s", name, body)
		}
		picked[name] = value
	}
	text, err := json.Marshal(picked)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A body that names another conversation than its route is refused, because the other conversation would not change.
func TestBodiesNameTheConversationOfTheRoute(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	first := c.made("/v1/conversations/?agent_id="+agent, `{}`)
	second := c.made("/v1/conversations/?agent_id="+agent, `{}`)
	body := fmt.Sprintf(`{"conversation_id":%q,"input":"Hello."}`, second)
	for _, path := range []string{"agents/" + agent + "/messages", "agents/" + agent + "/messages/stream",
		"agents/" + agent + "/messages/async", "agents/" + agent + "/messages/cancel", "agents/" + agent + "/summarize",
		"conversations/" + first + "/messages"} {
		got := c.call("POST", "/v1/"+path, body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != 422 ||
			!strings.Contains(got.Text, "conversation_id") {
			t.Errorf("%s: got %d %s %s, want 422", path, got.Code, detail, got.Text)
		}
	}
	for path, named := range map[string]string{"agents/" + agent: "default", "conversations/" + second: second} {
		body := fmt.Sprintf(`{"conversation_id":%q,"input":"Hello."}`, named)
		if got := c.call("POST", "/v1/"+path+"/messages", body); got.Code != 503 {
			t.Errorf("%s: got %d %s, want 503 of a server without a model", path, got.Code, got.Text)
		}
	}
}

func TestAnAgentOfNothingHasAName(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, body := range []string{"", "{}", `{"name":null,"tags":null,"memory_blocks":null,"secrets":{},"block_ids":[],` +
		`"context_window_limit":null}`} {
		got := fields(t, c.must("POST", "/v1/agents/", body))
		if words := strings.Fields(got["name"].(string)); len(words) != 2 {
			t.Errorf("%s: got name %q, want two words", body, got["name"])
		}
	}
}

func TestAgentFieldsAreKeptAndChanged(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", `{"name":"a","description":"d","system":"s","tags":["x","y"],"metadata":{"k":[1]},
		"timezone":"Europe/Berlin",
		"model":"openai/gpt-4o-mini","max_files_open":7,"per_file_view_window_char_limit":900,"hidden":false,
		"agent_type":"memgpt_v2_agent","include_base_tool_rules":false,
		"model_settings":{"provider_type":"openai","temperature":1.0},
		"tool_rules":[{"tool_name":"expand","type":"exit_loop"}],
		"tools":["open_files"],"unheard_of":1}`)
	all := []string{"name", "description", "system", "tags", "metadata", "timezone", "model", "max_files_open",
		"per_file_view_window_char_limit",
		"context_window_limit", "hidden", "agent_type", "model_settings", "tool_rules"}
	original := pick(t, c.must("GET", "/v1/agents/"+id, ""), all...)
	if want := `{"agent_type":"memgpt_v2_agent","context_window_limit":null,"description":"d","hidden":false,` +
		`"max_files_open":7,` +
		`"metadata":{"k":[1]},"model":"openai/gpt-4o-mini","model_settings":{"provider_type":"openai","temperature":1},` +
		`"name":"a",` +
		`"per_file_view_window_char_limit":900,"system":"s","tags":["x","y"],"timezone":"Europe/Berlin",` +
		`"tool_rules":[{"tool_name":"expand","type":"exit_loop"}]}`; original != want {
		t.Errorf("created: got\n%s, want\n%s", original, want)
	}
	for _, same := range []string{"", "{}", `{"name":null,"description":null,"system":null,"tags":null,"metadata":null,
		"timezone":null,"model":null,
		"hidden":null,"model_settings":null,"tool_rules":null,"folder_ids":null,"message_ids":null}`} {
		if got := pick(t, c.must("PATCH", "/v1/agents/"+id, same), all...); got != original {
			t.Errorf("changed by %q: got\n%s, want\n%s", same, got, original)
		}
	}
	for _, c2 := range []struct{ name, body, field, want string }{
		{"a text replaces", `{"name":"b"}`, "name", `{"name":"b"}`},
		{"an empty text is one", `{"description":""}`, "description", `{"description":""}`},
		{"a list replaces", `{"tags":["z"]}`, "tags", `{"tags":["z"]}`},
		{"an empty list clears", `{"tags":[]}`, "tags", `{"tags":[]}`},
		{"an object replaces", `{"metadata":{"a":1}}`, "metadata", `{"metadata":{"a":1}}`},
		{"null is the default again", `{"max_files_open":null}`, "max_files_open", `{"max_files_open":10}`},
		{"null is the default of characters again", `{"per_file_view_window_char_limit":null}`,
			"per_file_view_window_char_limit",
			`{"per_file_view_window_char_limit":25000}`},
		{"the window sets the limits", `{"context_window_limit":8192}`, "max_files_open", `{"max_files_open":3}`},
		{"null is the model's own window again", `{"context_window_limit":null}`, "max_files_open", `{"max_files_open":10}`},
		{"a full model configuration sets the window", `{"llm_config":{"model":"m","model_endpoint_type":"openai",` +
			`"context_window":8000}}`,
			"context_window_limit", `{"context_window_limit":8000}`},
		{"an integer with a fraction of zeros", `{"context_window_limit":8192.0}`, "context_window_limit",
			`{"context_window_limit":8192}`},
	} {
		if got := pick(t, c.must("PATCH", "/v1/agents/"+id+"/", c2.body), c2.field); got != c2.want {
			t.Errorf("%s: %s: got %s, want %s", c2.name, c2.body, got, c2.want)
		}
	}
}

func TestAgentsRefuse(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	id := c.made("/v1/agents", "")
	for _, r := range []struct {
		name, method, target, body string
		status                     int
		detail                     string
	}{
		{"a block without a label", "POST", "/v1/agents", `{"memory_blocks":[{"value":"x"}]}`, 422,
			"body.memory_blocks[0]: expected required property label to be present"},
		{"a block that is not there", "PATCH", "/v1/agents/" + id, `{"block_ids":["block-1"]}`, 404,
			"Block with ID block-1 not found"},
		{"messages by id", "PATCH", "/v1/agents/" + id, `{"message_ids":["message-1"]}`, 400,
			"message_ids: what was said is never rewritten"},
		{"a first message of a role that is not one", "POST", "/v1/agents", `{"initial_message_sequence":[{"role":"tool",` +
			`"content":"hi"}]}`, 422,
			"body.initial_message_sequence[0].role: expected value to be one of"},
		{"a first message without content", "POST", "/v1/agents", `{"initial_message_sequence":[{"role":"user"}]}`, 422,
			"body.initial_message_sequence[0]: expected required property content"},
		{"a first message of other parts", "POST", "/v1/agents", `{"initial_message_sequence":[{"role":"user",` +
			`"content":[{"type":"tool_call"}]}]}`, 422,
			"body.initial_message_sequence[0].content[0].type: expected value to be one of"},
		{"an image of nothing", "POST", "/v1/agents", `{"initial_message_sequence":[{"role":"user",` +
			`"content":[{"type":"image"}]}]}`, 422,
			"body.initial_message_sequence[0].content[0].source: "},
		{"a user's name that is too long", "POST", "/v1/agents", `{"initial_message_sequence":[{"role":"user",` +
			`"content":"hi","name":"` + strings.Repeat("n", 513) + `"}]}`,
			400, "messages[0]: name has 513 bytes"},
		{"identities", "POST", "/v1/agents", `{"identity_ids":["i"]}`, 404, "Identity with ID i not found"},
		{"a template", "POST", "/v1/agents", `{"from_template":"p/t:latest"}`, 400, "from_template: this server has"},
		{"a template's id", "POST", "/v1/agents", `{"template_id":"t"}`, 400, "template_id: this server has no templates"},
		{"a template's id later", "PATCH", "/v1/agents/" + id, `{"base_template_id":"t"}`, 400, "base_template_id: "},
		{"variables of a template", "POST", "/v1/agents", `{"memory_variables":{"a":"b"}}`, 400, "memory_variables: "},
		{"isolated blocks", "POST", "/v1/conversations?agent_id=" + id, `{"isolated_block_labels":["human"]}`, 400,
			"isolated_block_labels: all conversations of an agent share its blocks"},
		{"a tool that is not there", "POST", "/v1/agents", `{"tools":["open_files","send_mail"]}`, 400,
			"tools: there is no tool 'send_mail'; the tools are open_files, "},
		{"a type that is not one", "POST", "/v1/agents", `{"agent_type":"robot"}`, 422,
			"body.agent_type: expected value to be one of"},
		{"a name that is too long", "POST", "/v1/agents", `{"name":"` + strings.Repeat("a", 201) + `"}`, 400,
			"an agent's name has 201 characters"},
		{"a name with a NUL", "POST", "/v1/agents", `{"name":"a\u0000"}`, 422, "body.name: the text has a NUL"},
		{"a system with a NUL", "POST", "/v1/agents", `{"system":"a\u0000"}`, 422,
			"body.system: the text has a NUL"},
		{"metadata with a NUL", "POST", "/v1/agents", `{"metadata":{"a":"\u0000"}}`, 422,
			"body.metadata.a: the text has a NUL"},
		{"more files than may be", "PATCH", "/v1/agents/" + id, `{"max_files_open":1001}`, 400,
			"max_files_open cannot exceed 1000. Got: 1001"},
		{"a number beyond all integers", "PATCH", "/v1/agents/" + id, `{"max_files_open":1e30}`, 422,
			"body.max_files_open: expected number <= 2147483647. Got: 1e+30"},
		{"a fraction", "PATCH", "/v1/agents/" + id, `{"max_files_open":1.5}`, 422,
			"body.max_files_open: expected integer. Got: 1.5"},
		{"a folder that is not there", "POST", "/v1/agents", `{"folder_ids":["source-123e4567-e89b-42d3-8456-426614174000"]}`,
			404, "there is no such folder"},
		{"a configuration of other types", "POST", "/v1/agents", `{"llm_config":{"context_window":"big"}}`, 422,
			"body.llm_config.context_window: expected integer"},
		{"an agent that is not there", "GET", someAgent, "", 404, "Agent with ID " +
			"agent-123e4567-e89b-42d3-8456-426614174000 not found"},
		{"to change what is not there", "PATCH", someAgent, "{}", 404, "Agent with ID"},
		{"to delete what is not there", "DELETE", someAgent, "", 404, "Agent with ID"},
		{"the files of an agent that is not there", "GET", someAgent + "/files", "", 404, "Agent with ID"},
		{"the folders of an agent that is not there", "GET", someAgent + "/folders", "", 404, "Agent with ID"},
		{"the tools of an agent that is not there", "GET", someAgent + "/tools", "", 404, "Agent with ID"},
		{"an unknown order", "GET", "/v1/agents?order_by=name", "", 422, "query.order_by: expected value to be one of"},
		{"a NUL in a query", "GET", "/v1/agents?name=%00", "", 422, "query.name: the text has a NUL"},
	} {
		got := c.call(r.method, r.target, r.body)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != r.status || !strings.HasPrefix(detail, r.detail) {
			t.Errorf("%s: %s %s %s: got %d %s, want %d %q…", r.name, r.method, r.target, r.body, got.Code, got.Text, r.status,
				r.detail)
		}
	}
}

// namesOf returns the names in a list.
func namesOf(t *testing.T, body string) []string {
	t.Helper()
	var list []struct{ Name string }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("read %s: %v", body, err)
	}
	names := []string{}
	for _, item := range list {
		names = append(names, item.Name)
	}
	return names
}

func TestAgentsAreListed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ids := map[string]string{}
	for i, body := range []string{`{"name":"ann","tags":["a"]}`, `{"name":"bob","tags":["a","b"]}`,
		`{"name":"Bobby","tags":["b"]}`, `{"name":"hid","hidden":true}`} {
		ids[[]string{"ann", "bob", "Bobby", "hid"}[i]] = c.made("/v1/agents", body)
	}
	c.must("PATCH", "/v1/agents/"+ids["ann"], `{"description":"changed"}`)
	for _, l := range []struct {
		query string
		want  []string
	}{
		{"", []string{"Bobby", "bob", "ann"}},
		{"order=asc", []string{"ann", "bob", "Bobby"}},
		{"order_by=updated_at", []string{"ann", "Bobby", "bob"}},
		{"name=bob", []string{"bob"}},
		{"query_text=BOB", []string{"Bobby", "bob"}},
		{"tags=a&tags=b", []string{"Bobby", "bob", "ann"}},
		{"tags=a&tags=b&match_all_tags=true", []string{"bob"}},
		{"tags=&name=&limit=", []string{"Bobby", "bob", "ann"}},
		{"show_hidden_agents=true&limit=1", []string{"hid"}},
		{"limit=2", []string{"Bobby", "bob"}},
		{"after=" + ids["bob"], []string{"ann"}},
		{"before=" + ids["bob"], []string{"Bobby"}},
		{"order=asc&after=" + ids["bob"], []string{"Bobby"}},
		{"after=" + ids["ann"], []string{}},
		{"after=agent-gone", []string{}},
		{"project_id=&include=agent.tools&include_relationships=tags", []string{"Bobby", "bob", "ann"}},
	} {
		if got := namesOf(t, c.must("GET", "/v1/agents/?"+l.query, "")); !slices.Equal(got, l.want) {
			t.Errorf("list with %q: got %q, want %q", l.query, got, l.want)
		}
	}
	for query, want := range map[string]string{"": "3", "tags=a": "2", "name=nobody": "0"} {
		if got := c.must("GET", "/v1/agents/count?"+query, ""); got != want {
			t.Errorf("count with %q: got %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{"": `["a","b"]`, "after=a": `["b"]`, "order=desc&limit=1": `["b"]`,
		"name=B": `["b"]`, "query_text=x": `[]`} {
		if got := c.must("GET", "/v1/tags?"+query, ""); got != want {
			t.Errorf("tags with %q: got %s, want %s", query, got, want)
		}
	}
}

// A client that asks for the items after the last one gets an empty page at the end.
func TestIterationEnds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f0"}`)
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"n0","folder_ids":[%q]}`, folder))
	for i := 1; i < 5; i++ {
		other := c.made("/v1/folders", fmt.Sprintf(`{"name":"f%d"}`, i))
		c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+other, "")
		c.made("/v1/agents", fmt.Sprintf(`{"name":"n%d"}`, i))
	}
	for target, want := range map[string]int{"/v1/agents/": 5, "/v1/folders/": 5, "/v1/agents/" + agent + "/folders": 5,
		"/v1/agents/" + agent + "/tools": 19,
		"/v1/tools/":                     29} {
		for _, order := range []string{"asc", "desc"} {
			ids, after := map[string]bool{}, ""
			for range 16 {
				var page []struct{ ID string }
				body := c.must("GET", target+"?limit=2&order="+order+"&after="+url.QueryEscape(after), "")
				if err := json.Unmarshal([]byte(body), &page); err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					after = "ended"
					break
				}
				for _, item := range page {
					ids[item.ID] = true
				}
				after = page[len(page)-1].ID
			}
			if after != "ended" || len(ids) != want {
				t.Errorf("%s %s: saw %d items, ended %v; want %d and an end", target, order, len(ids), after == "ended", want)
			}
		}
	}
}

func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	memory := []string{"memory_finish_edits", "send_message", "start_subagent", "request_erasure",
		"archival_memory_delete", "archival_memory_update",
		"archival_memory_search",
		"archival_memory_insert", "memory_files", "update_working_memory", "memory", "memory_apply_patch",
		"memory_rethink", "memory_replace", "memory_insert", "core_memory_replace", "core_memory_append"}
	all := append(slices.Clone(memory), "ask_session", "search_memory", "query_log", "query_result", "expand",
		"conversation_search", "load_skill", "close_files", "list_files", "semantic_search_files", "grep_files", "open_files")
	for query, want := range map[string][]string{
		"": all, "name=open_files": {"open_files"}, "names=open_files&names=grep_files&names=x": {"grep_files", "open_files"},
		"search=SEARCH": {"archival_memory_search", "search_memory", "conversation_search",
			"semantic_search_files"},
		"tool_types=custom": {}, "exclude_tool_types=letta_files_core": append(slices.Clone(memory), "ask_session",
			"search_memory", "query_log", "query_result", "expand", "conversation_search", "load_skill"),
		"tool_types=letta_core&limit=1":   {"send_message"},
		"tool_types=letta_sleeptime_core": {"memory_finish_edits", "memory_rethink", "memory_replace", "memory_insert"},
		"limit=1&order=asc":               {"open_files"},
	} {
		body := c.must("GET", "/v1/tools/?"+query, "")
		if diff := cmp.Diff(want, namesOf(t, body)); diff != "" {
			t.Errorf("tools with %q (-want +got):\n%s", query, diff)
		}
	}
	if got := c.must("GET", "/v1/tools/count", ""); got != "29" {
		t.Errorf("count: got %s, want 29", got)
	}
	var list []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/tools", "")), &list); err != nil {
		t.Fatal(err)
	}
	if got := fields(t, c.must("GET", "/v1/tools/"+list[0].ID, ""))["name"]; got != list[0].Name {
		t.Errorf("tool %s: got %v, want %s", list[0].ID, got, list[0].Name)
	}
	servertest.CheckProblem(t, c.call("GET", "/v1/tools/tool-123e4567-e89b-42d3-8456-426614174000", ""), 404,
		map[string]any{"detail": "Tool with ID tool-123e4567-e89b-42d3-8456-426614174000 not found"})
}
