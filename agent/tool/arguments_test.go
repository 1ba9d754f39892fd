package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/files"
)

func TestOpenFilesUnderstandsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	whole := []files.OpenRequest{{FileName: "docs/a.md"}}
	part := []files.OpenRequest{{FileName: "docs/a.md", Offset: new(20), Length: new(5)}}
	for _, tt := range []struct {
		name, args string
		want       tool.Opens
	}{
		{"the schema's form", `{"file_requests": [{"file_name": "docs/a.md"}]}`, tool.Opens{Requests: whole}},
		{"numbers", `{"file_requests": [{"file_name": "docs/a.md", "offset": 20, "length": 5}]}`, tool.Opens{Requests: part}},
		{"a line counts from 1", `{"file_requests": [{"file_name": "docs/a.md", "line": 21, "length": 5}]}`,
			tool.Opens{Requests: part}},
		{"numbers in strings", `{"file_requests": [{"file_name": "docs/a.md", "offset": "20", "length": " 5 "}]}`,
			tool.Opens{Requests: part}},
		{"numbers with a point", `{"file_requests": [{"file_name": "docs/a.md", "offset": 20.0, "length": 5e0}]}`,
			tool.Opens{Requests: part}},
		{"null and empty are absent",
			`{"file_requests": [{"file_name": "docs/a.md", "offset": null, "length": ""}], "close_all_others": null}`,
			tool.Opens{Requests: whole}},
		{"a length alone counts from the first line", `{"file_requests": [{"file_name": "docs/a.md", "length": 5}]}`,
			tool.Opens{Requests: []files.OpenRequest{{FileName: "docs/a.md", Offset: new(0), Length: new(5)}}}},
		{"one request without a list", `{"file_requests": {"file_name": "docs/a.md"}}`, tool.Opens{Requests: whole}},
		{"a bare name", `{"file_requests": "docs/a.md"}`, tool.Opens{Requests: whole}},
		{"a list of names", `{"file_requests": ["docs/a.md", "docs/b.md"]}`,
			tool.Opens{Requests: []files.OpenRequest{{FileName: "docs/a.md"}, {FileName: "docs/b.md"}}}},
		{"a list in a string", `{"file_requests": "[{\"file_name\": \"docs/a.md\"}]"}`, tool.Opens{Requests: whole}},
		{"arguments in a block of Markdown", "\"```json\\n{\\\"file_requests\\\": [\\\"docs/a.md\\\"]}\\n```\"",
			tool.Opens{Requests: whole}},
		{"a list in a block of Markdown", "{\"file_requests\": \"```\\n[\\\"docs/a.md\\\"]\\n```\"}",
			tool.Opens{Requests: whole}},
		{"a request in a string in a list", `{"file_requests": ["{\"file_name\": \"docs/a.md\"}"]}`,
			tool.Opens{Requests: whole}},
		{"a name that begins like a list", `{"file_requests": "[draft] a.md"}`,
			tool.Opens{Requests: []files.OpenRequest{{FileName: "[draft] a.md"}}}},
		{"nulls in the list", `{"file_requests": [null, "docs/a.md"]}`, tool.Opens{Requests: whole}},
		{"all arguments in a string", `"{\"file_requests\": [\"docs/a.md\"], \"include_content\": true}"`,
			tool.Opens{Requests: whole, WithContent: true}},
		{"Python's True", `{"file_requests": ["docs/a.md"], "close_all_others": "True", "include_content": 1}`,
			tool.Opens{Requests: whole, CloseOthers: true, WithContent: true}},
		{"what Letta's loop adds",
			`{"file_requests": ["docs/a.md"], "request_heartbeat": true, "inner_thoughts": "hm", "thinking": "hm"}`,
			tool.Opens{Requests: whole}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.ReadOpen(tt.args)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tt.args, err, diff)
			}
		})
	}
}

func TestGrepFilesUnderstandsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args string
		want       files.GrepQuery
	}{
		{"one line of context by default", `{"pattern": "a"}`, files.GrepQuery{Pattern: "a", ContextLines: 1}},
		{"no context where 0 is asked for", `{"pattern": "a", "context_lines": 0}`, files.GrepQuery{Pattern: "a"}},
		{"everything",
			`{"pattern": "a", "include": "*.md", "context_lines": "20", "offset": "40", ` +
				`"case_sensitive": true, "literal": "true"}`,
			files.GrepQuery{Pattern: "a", Include: "*.md", ContextLines: 20, Offset: 40, CaseSensitive: true, Literal: true}},
		{"a number as pattern", `{"pattern": 404}`, files.GrepQuery{Pattern: "404", ContextLines: 1}},
		{"blanks in a pattern count", `{"pattern": "  return"}`, files.GrepQuery{Pattern: "  return", ContextLines: 1}},
		{"a pattern that looks like JSON stays", `{"pattern": "{\"a\": 1}"}`,
			files.GrepQuery{Pattern: `{"a": 1}`, ContextLines: 1}},
		{"NUL is shown", `{"pattern": "a\u0000b"}`, files.GrepQuery{Pattern: "a␀b", ContextLines: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.ReadGrep(tt.args)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tt.args, err, diff)
			}
		})
	}
}

func TestSearchFilesUnderstandsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args string
		want       files.Query
	}{
		{"5 by default", `{"query": "retries"}`, files.Query{Text: "retries", Limit: 5}},
		{"a limit in a string", `{"query": "retries", "limit": "10", "include": "docs/*"}`,
			files.Query{Text: "retries", Limit: 10, Include: "docs/*"}},
		{"50 at most", `{"query": "retries", "limit": 1000}`, files.Query{Text: "retries", Limit: 50}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.ReadSearch(tt.args)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tt.args, err, diff)
			}
		})
	}
}

func TestCloseFilesUnderstandsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args string
		want       []string
		all        bool
	}{
		{"a list", `{"file_names": ["docs/a.md", "docs/b.md"]}`, []string{"docs/a.md", "docs/b.md"}, false},
		{"a bare name", `{"file_names": "docs/a.md"}`, []string{"docs/a.md"}, false},
		{"a list in a string", `{"file_names": "[\"docs/a.md\"]"}`, []string{"docs/a.md"}, false},
		{"all", `{"all": true, "file_names": []}`, []string{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, all, err := tool.ReadClose(tt.args)
			if diff := cmp.Diff(tt.want, got); err != nil || all != tt.all || diff != "" {
				t.Errorf("%s: all %t, want %t, %v (-want +got):\n%s", tt.args, all, tt.all, err, diff)
			}
		})
	}
}

// The error of a wrong item says that the argument is a list.
func TestListsSayThatTheyAreLists(t *testing.T) {
	t.Parallel()
	_, _, err := tool.ReadClose(`{"file_names":{"a":1}}`)
	if err == nil || !strings.Contains(err.Error(), "must be a list; each item must be a string") {
		t.Error(err)
	}
}

// Arguments that were cut off end too early, and the answer says so; that of other broken ones says where.
func TestCutArgumentsAreExplained(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"command":"view","path":"/memories`: "end too early, after 35 bytes: {\"command\":\"view\",\"path\":" +
			"\"/memories. Nothing was done. Send the whole",
		`"{\"command\":\"view\",\"path\":\"/mem"`: `end too early, after 30 bytes: {"command":"view","path":"/mem.`,
		`"view human"`:                  "must be a JSON object of: command",
		`{"command":"view" "path":"x"}`: "are no valid JSON (invalid character '\"' after object key:value pair",
		`["view"]`:                      "must be a JSON object of: command",
	} {
		got, err := tool.New(tool.Memories{}).Run(t.Context(), tool.Caller{Org: 1}, "memory", json.RawMessage(args))
		if err != nil || !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %q, %v, want %q in it", args, got.Text, err, want)
		}
	}
}

// An argument that has two names has one value: the same twice is read once, and two are refused.
func TestTwoNamesOfAnArgumentAgree(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	s.agent.Settings.Tools = nil
	for _, c := range []struct{ name, args, want string }{
		{"memory", `{"command":"str_replace","path":"human","old_str":"a","old_string":"b","new_str":"c"}`,
			"old_str and old_string are two names of one argument, and their values differ: give one of them."},
		{"memory", `{"command":"str_replace","path":"human","old_str":"a","new_str":"c","new_string":"d"}`,
			"new_str and new_string are two names"},
		{"memory", `{"command":"str_replace","path":"human","old_str":"a","old_string":"a","new_str":"c"}`,
			"old_str `a` did not appear"},
		{"memory", `{"command":"rename","path":"human","old_path":"persona","new_path":"p"}`,
			"path and old_path are two names"},
		{"memory", `{"command":"view","action":"delete","path":"human"}`, "action and command are two names"},
		{"memory", `{"command":"view","action":"view","path":"human"}`, "is empty"},
		{"memory", `{"command":"view","path":"human","label":"persona"}`, "label and path are two names"},
		{"memory_insert", `{"label":"human","new_string":"a","text":"b"}`, "text and new_string are two names"},
		{"memory_insert", `{"label":"human","new_string":"a","text":"a"}`, "was edited"},
		{"memory_replace", `{"label":"human","oldText":"a","old_content":"q","new_string":"b"}`,
			"old_content and oldText are two names"},
		{"core_memory_append", `{"label":"human","block":"human","content":"b"}`, "was edited"},
		{"search_memory", `{"query":"a","q":"b"}`, "q and query are two names"},
		{"expand", `{"id":"seq 1-2","seq":"3"}`, "seq and id are two names"},
	} {
		if got := s.run(t, c.name, c.args); !strings.Contains(got.Text, c.want) {
			t.Errorf("%s %s: %q, want %q in it", c.name, c.args, got.Text, c.want)
		}
	}
}

// An error names an argument as the call does.
func TestErrorsNameArgumentsAsTheCallDoes(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	s.run(t, "memory", `{"command":"create","path":"/memories/n.md","file_text":"tea"}`)
	for _, c := range []struct{ name, args, want string }{
		{"memory", `{"command":"str_replace","path":"human","old_str":"a"}`, "needs the argument new_str."},
		{"memory", `{"command":"str_replace","path":"human","old_string":"a"}`, "needs the argument new_string."},
		{"memory", `{"command":"str_replace","path":"human","new_str":"a"}`, "old_str is required"},
		{"memory", `{"command":"str_replace","path":"human","old_str":"a","new_str":"b"}`, "old_str `a` did not appear"},
		{"memory", `{"command":"str_replace","path":"/memories/n.md","old_string":"zz","new_string":"b"}`,
			"old_string does not occur verbatim"},
		{"memory_replace", `{"label":"human","oldText":"a"}`, "needs the argument newText."},
		{"memory_replace", `{"label":"human","old_str":"a","new_str":"b"}`, "old_str `a` did not appear"},
		{"core_memory_replace", `{"label":"human","old_str":"a"}`, "needs the argument new_str."},
		{"archival_memory_search", `{"query":"a","k":{"a":1}}`,
			"Argument k of archival_memory_search must be a whole number"},
	} {
		if got := s.run(t, c.name, c.args); !got.IsError || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s %s: %q, want %q in it", c.name, c.args, got.Text, c.want)
		}
	}
}

// An error says what to do instead.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSmall(t, 8_192)
	s.agent.Settings.Tools = nil
	s.run(t, "memory", `{"command":"insert","path":"human","insert_text":"tea\ntea"}`)
	for _, c := range []struct{ name, args, want string }{
		{"memory", `{"command":"create","path":"/memories/","file_text":"x"}`,
			"Name a file in it, such as /memories/notes.md"},
		{"memory", `{"command":"delete","path":"/"}`, "Name a file in it, such as /memories/notes.md"},
		{"memory", `{"command":"create","file_text":"x"}`, "the label of a core memory block, such as human, or the path"},
		{"memory", `{"command":"str_replace","path":"human","old_str":"tea","new_str":"x"}`,
			"give more of the text around it"},
		{"memory", `{"command":"str_replace","path":"human","old_str":"q","new_str":"x"}`, "Copy the text exactly"},
		{"memory", `{"command":"overwrite","path":"human","file_text":"x"}`, "you may mean str_replace"},
		{"memory_apply_patch", `{"patch":"-tea\n+y"}`, "The patch names no block: give its label"},
		{"memory_files", `{"command":"str_replace","path":"/memories/a.md","old_str":"x","new_str":"y"}`, "create makes one"},
		{"memory_files", `{"command":"overwrite","path":"/memories/a.md","file_text":"x"}`, "The command view shows it."},
		{"open_files", `{}`, `give file_requests=[{"file_name":"folder/name.txt"}]`},
		{"grep_files", `{}`, "give pattern, such as"}, {"semantic_search_files", `{}`, "give query"},
		{"expand", `{"id":"4200"}`, "the results of a search show ids and seq numbers"},
		{"conversation_search", `{"around":"message-1"}`, "the results of a search show the ids of messages"},
		{"conversation_search", `{"query":"x","conversation_id":"conv-1"}`, "leave conversation_id out"},
		{"archival_memory_insert", `{"content":"x","supersedes":"passage-1"}`, "shows the ids of passages"},
		{"ask_session", `{"session":"conv-1","question":"x"}`, "show their ids"},
	} {
		if got := s.run(t, c.name, c.args); !got.IsError || !strings.Contains(got.Text, c.want) {
			t.Errorf("%s %s: %q, want %q in it", c.name, c.args, got.Text, c.want)
		}
	}
	for _, kinds := range []string{`["blocks"]`, `"core memory"`, `["Block"]`} {
		if got := s.run(t, "search_memory", `{"query":"tea","kinds":`+kinds+`}`); got.IsError {
			t.Errorf("kinds %s: %s", kinds, got.Text)
		}
	}
}

// A list that was cut is no name of a file.
func TestACutListIsNamed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"file_requests": "[{\"file_name\": \"docs/a.md\""}`,
		`{"file_requests": "[\"docs/a.md"}`,
		`{"file_requests": "{\"file_name\": \"docs/a.md"}`} {
		if _, err := tool.ReadOpen(args); err == nil || !strings.Contains(err.Error(), "must be whole JSON") {
			t.Errorf("%s: %v", args, err)
		}
	}
}
