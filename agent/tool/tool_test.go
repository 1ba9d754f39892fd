package tool_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/golden"
)

// checkGolden compares what a model reads with testdata/NAME.golden.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, "testdata/"+name+".golden", got+"\n")
}

func TestToolsAndTheirIDs(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	var order []string
	for _, tl := range tool.New(tool.Memories{}).Tools() {
		got[tl.Name] = tl.ID
		order = append(order, tl.Name)
	}
	if want := []string{"open_files", "grep_files", "semantic_search_files", "list_files", "close_files", "load_skill",
		"conversation_search", "expand", "query_result", "query_log", "search_memory", "ask_session",
		"core_memory_append", "core_memory_replace", "memory_insert", "memory_replace", "memory_rethink",
		"memory_apply_patch", "memory", "update_working_memory", "memory_files",
		"archival_memory_insert", "archival_memory_search", "archival_memory_update",
		"archival_memory_delete", "request_erasure", "start_subagent",
		"send_message", "memory_finish_edits"}; !slices.Equal(order, want) {
		t.Errorf("tools are %q, want %q", order, want)
	}
	want := map[string]string{ // clients store these ids, so they never change
		"open_files":             "tool-687d900e-7723-43fc-af89-b44834979acd",
		"grep_files":             "tool-78d729c5-622f-45a3-aa67-8c319b69a64a",
		"semantic_search_files":  "tool-81e31d6f-8c69-418d-8cbd-e4077a03589a",
		"list_files":             "tool-ad1ed676-6888-421b-9eae-9284a4123797",
		"archival_memory_delete": "tool-a64291d3-b6f8-4ed2-b264-4d7d257c9f40",
		"archival_memory_insert": "tool-9eb8df59-e12e-489b-951d-0c3982e9fb95",
		"archival_memory_search": "tool-fee1f477-74c8-4eca-addb-0661814259cf",
		"archival_memory_update": "tool-7c20dc94-eac6-4893-adf2-87bb9fe4a8a1",
		"core_memory_append":     "tool-5e2cc850-e2a1-4b70-af64-f5e5838c4b4e",
		"core_memory_replace":    "tool-fea57547-3a59-4a94-bae4-2fdabdbf6147",
		"load_skill":             "tool-05068c0a-3f69-428c-8c5c-ff2d9d910f4f",
		"memory":                 "tool-da502059-6474-4acb-bd6a-55719cdf05f5",
		"memory_apply_patch":     "tool-f3367bf5-c603-4f4a-a76d-5d9bed902a78",
		"memory_files":           "tool-7b83fcd9-bb52-4b8f-8aad-4e07f7e3aa22",
		"memory_insert":          "tool-a998699a-b6f9-4c18-b1ed-a704d059e72c",
		"memory_replace":         "tool-2cc2889b-5d60-41d2-aae2-11ee1bb28b86",
		"memory_rethink":         "tool-0e6113e2-45ee-4067-916a-c5ccf806f860",
		"request_erasure":        "tool-91460506-b00a-41f5-b884-1ebd2bbe8739",
		"search_memory":          "tool-fa879656-6e10-4a60-8cd0-f73ac11867de",
		"update_working_memory":  "tool-a46eefe2-d9d4-4fe1-b744-e4309a21e821",
		"query_log":              "tool-11cfd744-8ebb-4523-a977-52f1465e0302",
		"query_result":           "tool-36be1a87-2c68-4999-afc1-e7f00d80b53d",
		"ask_session":            "tool-e853242f-2d29-4b4f-abbd-c999f31c506e",
		"close_files":            "tool-4b84b8ae-b028-4d45-9ac9-cb5cdccd4175",
		"conversation_search":    "tool-ee2d7cf9-7b3e-443c-8403-0644189f2b6f",
		"expand":                 "tool-493c5a60-d775-4f79-9566-74f4cf4d2a78",
		"send_message":           "tool-6ce0edc4-e762-4eb2-9c2f-e14fa471dfba",
		"memory_finish_edits":    "tool-ca0b677e-42e5-4e0a-bf56-13814d7296fa",
		"start_subagent":         "tool-f81116d3-efe0-4180-95b5-ff0f970341f9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

type property struct {
	Type        string
	Description string
	Items       *parameters
}

type parameters struct {
	Type       string
	Properties map[string]property
	Required   []string
}

func TestSchemasAgreeWithTheArguments(t *testing.T) {
	t.Parallel()
	for _, tl := range tool.New(tool.Memories{}).Tools() {
		var s struct {
			Name, Description string
			Parameters        parameters
		}
		if err := json.Unmarshal(tl.Schema, &s); err != nil {
			t.Fatalf("schema of %s: %v", tl.Name, err)
		}
		if s.Name != tl.Name || s.Description != tl.Description || s.Parameters.Type != "object" {
			t.Errorf("schema of %s is named %q, of type %q", tl.Name, s.Name, s.Parameters.Type)
		}
		agree(t, tl, s.Parameters, tl.Arguments())
		if items := s.Parameters.Properties["file_requests"].Items; items != nil {
			agree(t, tl, *items, tool.RequestArguments())
		}
	}
}

// agree compares arguments with a schema. A property is described, or the description of the tool names it.
func agree(t *testing.T, tl tool.Tool, p parameters, arguments []string) {
	t.Helper()
	var properties []string
	name := tl.Name
	for property, about := range p.Properties {
		properties = append(properties, property)
		if about.Description == "" && !strings.Contains(strings.ToLower(tl.Description), property) || about.Type == "" {
			t.Errorf("%s.%s has no type or description", name, property)
		}
	}
	slices.Sort(properties)
	if want := slices.Sorted(slices.Values(arguments)); !slices.Equal(properties, want) {
		t.Errorf("schema of %s has %q, its struct %q", name, properties, want)
	}
	for _, required := range p.Required {
		if !slices.Contains(arguments, required) {
			t.Errorf("schema of %s requires %q, which is no argument", name, required)
		}
	}
}

// The descriptions of an agent's tools state the bounds in force for it, and stay as they are while its settings do.
func TestDescriptionsStateTheBoundsInForce(t *testing.T) {
	t.Parallel()
	tools := tool.New(tool.Memories{})
	refusing := policy.ReadBounds{MaxLines: 2_000, MaxBytes: 256 << 10, MaxTokens: 25_000, OnExceed: "refuse"}
	for _, tt := range []struct {
		name, tool string
		agent      agent.Agent
		want       []string
	}{
		{"the limits of the window", "open_files", agent.Agent{WindowLimit: new(16_000)},
			[]string{"At most 5 files are open", "at most 15,000 characters each", "Lines count from 1"}},
		{"the operator's", "open_files", agent.Agent{MaxFilesOpen: new(1), ViewChars: new(700)},
			[]string{"At most 1 file is open, at most 700 characters"}},
		{"a policy that shortens reads", "open_files",
			agent.Agent{InForce: policy.Policy{Steps: []policy.Step{&policy.ReadBounds{MaxLines: 2_000, MaxBytes: 50 << 10}}}},
			[]string{"include_content shows at most 2,000 lines or 50 KB"}},
		{"a policy that refuses reads", "open_files",
			agent.Agent{InForce: policy.Policy{Steps: []policy.Step{&refusing}}},
			[]string{"Above 256 KB or 25,000 tokens a read is refused"}},
		{"matches under a policy", "grep_files",
			agent.Agent{InForce: policy.Policy{Steps: []policy.Step{&policy.ReadBounds{MaxLines: 100, MaxBytes: 50 << 10,
				MaxMatchChars: 500}}}},
			[]string{"At most 100 lines or 50 KB", "lines are cut at 500 characters"}},
		{"results that are stored outside the log", "expand", agent.Agent{},
			[]string{"Shows 16,000 bytes at once, with limit at most 48,000. Results above 50,000 characters are previewed"}},
		{"what a small window shows at once", "expand", agent.Agent{WindowLimit: new(4_096)},
			[]string{"Shows 4,096 bytes at once. Results above"}},
		{"results under a policy", "expand",
			agent.Agent{InForce: policy.Policy{Steps: []policy.Step{&policy.Offload{MaxResultChars: 9_000}}}},
			[]string{"Results above 9,000 characters are previewed"}},
	} {
		var before string
		for range 2 {
			all := tools.Of(tt.agent, true)
			i := slices.IndexFunc(all, func(t tool.Tool) bool { return t.Name == tt.tool })
			var schema struct{ Description string }
			if err := json.Unmarshal(all[i].Schema, &schema); err != nil || schema.Description != all[i].Description {
				t.Errorf("%s: the schema says %q (%v), the tool %q", tt.name, schema.Description, err, all[i].Description)
			}
			for _, want := range tt.want {
				if !strings.Contains(schema.Description, want) {
					t.Errorf("%s: the description of %s lacks %q:\n%s", tt.name, tt.tool, want, schema.Description)
				}
			}
			if before != "" && before != string(all[i].Schema) {
				t.Errorf("%s: the schema changed from %s to %s", tt.name, before, all[i].Schema)
			}
			before = string(all[i].Schema)
		}
	}
}

// A program that calls tools over MCP has another model, so that the agent's window does not bound its results. The
// descriptions that it is given say so.
func TestDescriptionsForAnotherModelState(t *testing.T) {
	t.Parallel()
	tools := tool.New(tool.Memories{})
	for _, tl := range tools.OfCaller(tool.Caller{Agent: agent.Agent{WindowLimit: new(4_096)}, Unprompted: true}, true) {
		const want = "Shows 16,000 bytes at once, with limit at most 48,000."
		if tl.Name == "expand" && !strings.Contains(string(tl.Schema), want) {
			t.Errorf("expand: %s", tl.Schema)
		}
	}
}

// No tool's description names another tool, which may be detached.
func TestNoToolIsDescribedByAnothersName(t *testing.T) {
	t.Parallel()
	for _, tl := range tool.New(tool.Memories{}).Tools() {
		for _, other := range names() {
			if other != tl.Name && mentioned(string(tl.Schema), other) {
				t.Errorf("%s names %s: %s", tl.Name, other, tl.Schema)
			}
		}
	}
}

func TestAnUnknownToolIsAResultWithAnError(t *testing.T) {
	t.Parallel()
	small := agent.Agent{Settings: agent.Settings{Tools: []string{agent.DefaultTools}}}
	got, err := tool.New(tool.Memories{}).Run(t.Context(), tool.Caller{Org: 1, Agent: small}, "write_files", nil)
	if err != nil || !got.IsError {
		t.Errorf("Run(write_files) = %+v, %v, want a result with an error", got, err)
	}
	checkGolden(t, "unknown_tool", got.Text)
}

// Each mistake in arguments that is found without reading a memory has its own explanation.
func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1001)
	var many []string
	for i := range 26 {
		many = append(many, strings.Repeat(string('a'+rune(i)), 100))
	}
	var b strings.Builder
	for _, tt := range [][2]string{
		{"open_files", ``},
		{"open_files", `{}`},
		{"open_files", `{"file_requests": []}`},
		{"open_files", `{"file_requests": [null]}`},
		{"open_files", `["docs/a.md"]`},
		{"open_files", `not json`},
		{"open_files", `{"file_requests": [5]}`},
		{"open_files", `{"file_requests": true}`},
		{"open_files", `{"file_requests": [["docs/a.md"]]}`},
		{"open_files", `{"file_requests": [{"offset": 3}]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "line": 0}]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "line": 3, "offset": 2}]}`},
		{"open_files", `{"file_requests": [{"file_name": ["docs/a.md"]}]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "offset": "third"}]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "offset": -1}]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "offset": 0, "length": 0}]}`},
		{"open_files", `{"file_requests": ["docs/a.md"], "close_all_others": "perhaps"}`},
		{"grep_files", `{}`},
		{"grep_files", `{"pattern": " \t"}`},
		{"grep_files", `{"pattern": {"regex": "a"}}`},
		{"grep_files", `{"pattern": "a", "context_lines": 21}`},
		{"grep_files", `{"pattern": "a", "context_lines": -1}`},
		{"grep_files", `{"pattern": "a", "offset": 1.5}`},
		{"grep_files", `{"pattern": "a", "offset": -1}`},
		{"list_files", `{"offset": "-1"}`},
		{"grep_files", `{"pattern": "a", "offset": 1e300}`},
		{"grep_files", `{"pattern": "` + long + `"}`},
		{"grep_files", `{"pattern": ["` + long + `"]}`},
		{"semantic_search_files", `{"query": "  "}`},
		{"semantic_search_files", `{"query": "retries", "limit": 0}`},
		{"semantic_search_files", `{"query": "retries", "limit": []}`},
		{"semantic_search_files", `{"query": "` + strings.Repeat("wide ", 7_000) + `"}`},
		{"list_files", `{"limit": -5}`},
		{"list_files", `{"limit": 201}`},
		{"search_memory", `{"query": "a", "limit": 51}`},
		{"query_result", `{"id": "clip-1", "pattern": "a", "limit": 100000}`},
		{"close_files", `{"` + strings.Join(many, `": 1, "`) + `": 1}`},
		{"close_files", `{}`},
		{"close_files", `{"file_names": ["docs/a.md"], "all": true}`},
		{"close_files", `{"file_names": {"file_name": "docs/a.md"}}`},
		{"conversation_search", `{"query": ["a", "b"]}`},
		{"conversation_search", `{"query": "a", "limit": 0}`},
		{"conversation_search", `{"query": "a", "roles": ["user", "system"]}`},
		{"conversation_search", `{"query": "a", "start_date": "last week"}`},
		{"conversation_search", `{"query": "a", "end_date": "2024-13-01"}`},
		{"conversation_search", `{"query": "a", "start_date": "2024-02-02", "end_date": "2024-02-01"}`},
		{"conversation_search", `{"query": "a", "before": 3}`},
		{"conversation_search", `{"query": "a", "around": "message-1"}`},
		{"conversation_search", `{"around": "message-1", "before": -1}`},
		{"conversation_search", `{"around": "message-1", "after": 1000}`},
		{"conversation_search", `{"query": "` + strings.Repeat("wide ", 7_000) + `"}`},
		{"archival_memory_search", `{"query": "` + strings.Repeat("wide ", 7_000) + `"}`},
		{"search_memory", `{"query": "` + strings.Repeat("wide ", 7_000) + `"}`},
		{"expand", `{}`},
		{"expand", `{"id": "  "}`},
		{"expand", `{"id": "clip-1", "limit": 0}`},
		{"expand", `{"id": "clip-1", "limit": 48001}`},
		{"expand", `{"id": "clip-1", "offset": "middle"}`},
		{"update_working_memory", `{"changes": ["Ship it"]}`},
		{"open_files", `{"file_requests": [{"file_name": "docs/a.md", "tail": 3}]}`},
		{"close_files", `{"except": "docs/a.md"}`},
		{"memory", `{"command": "delete", "path": "human", "if_version": 3}`},
		{"memory", `{"command": "insert", "path": "human"}`},
		{"memory", `{"command": "insert", "path": "human", "insert_text": "a", "insert_line": "last"}`},
		{"memory_files", `{"command": "view", "path": "/memories", "recursive": [true]}`},
		{"memory_files", `{"path": "/memories"}`},
		{"memory_insert", `{"label": "human", "new_string": "a", "position": "top"}`},
		{"update_working_memory", `{"changes": {"area": "task"}}`},
	} {
		got, err := tool.New(tool.Memories{}).Run(t.Context(), tool.Caller{Org: 1}, tt[0], json.RawMessage(tt[1]))
		if err != nil || !got.IsError {
			t.Errorf("%s(%s) = %+v, %v, want a Result with IsError", tt[0], tt[1], got, err)
		}
		if n := utf8.RuneCountInString(got.Text); n > 1000 || !utf8.ValidString(got.Text) {
			t.Errorf("%s(%s): %d characters, valid %t, want at most 1000", tt[0], tt[1], n, utf8.ValidString(got.Text))
		}
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(tt[1], long, "é × 1001"),
			strings.Repeat("wide ", 7_000), "wide × 7000") + "\n    " + got.Text + "\n\n")
	}
	checkGolden(t, "mistakes", strings.TrimSpace(b.String()))
}
