package tool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// No text of a tool names a tool that is detached. This covers errors, empty results, page notes and cut texts.
func TestTextsNameNoDetachedTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, document{"docs", "long.md", "# Long\n" + strings.Repeat("marmalade\n", 3000)})
	w.unread(t)
	text := strings.Repeat("a line of the result\n", 3000)
	w.say(t, recall.DefaultConversation,
		draft(recall.User, "2024-03-01T00:00:00Z", recall.Part{Type: recall.Text, Text: strings.Repeat("zebra ", 5000)}),
		draft(recall.Assistant, "2024-03-06T00:00:00Z", recall.Part{Type: recall.ToolCall, CallID: "d", Name: "read"}),
		draft(recall.Tool, "2024-03-06T00:00:01Z", recall.Part{Type: recall.ToolReturn, CallID: "d", Text: text}))
	found := ids.FindString(w.run(t, "conversation_search", `{"query": "zebra", "limit": 1}`).Text)
	for name, calls := range map[string][]string{
		"open_files": {`{}`, `{"file_requests": ["docs/none.md"]}`, `{"file_requests": ["docs/long.md"]}`,
			`{"file_requests": ["docs/long.md"], "include_content": true}`, `{"file_requests": ["docs/unread.md"]}`},
		"grep_files": {`{}`, `{"pattern": "marmalade"}`, `{"pattern": "giraffe"}`, `{"pattern": "("}`,
			`{"pattern": "marmalade", "offset": 9999}`, `{"pattern": "a", "context_lines": 50}`},
		"semantic_search_files": {`{}`, `{"query": "marmalade"}`, `{"query": "giraffe", "include": "*.rs"}`,
			`{"query": "giraffe"}`, `{"query": "retried", "limit": 1}`},
		"list_files":  {`{"pattern": "*.rs"}`, `{"limit": 1}`, `{"offset": 99}`},
		"close_files": {`{}`, `{"file_names": ["docs/none.md"]}`, `{"file_names": ["docs/guide.md"]}`},
		"conversation_search": {`{"query": "zebra"}`, `{"query": "giraffe"}`, `{"query": "zebra", "roles": "tool"}`,
			`{"query": "line of the result"}`, `{"query": "zebra", "limit": 1, "offset": 99}`, `{"around": "` + found + `"}`,
			`{"around": "none"}`, `{"before": 1}`},
		"expand":                 {`{}`, `{"id": "seq 1-9"}`, `{"id": "` + found + `"}`, `{"id": "none"}`},
		"core_memory_append":     {`{}`, `{"label": "none", "content": "x"}`},
		"core_memory_replace":    {`{}`, `{"label": "none", "old_content": "x", "new_content": "y"}`},
		"memory_insert":          {`{}`, `{"label": "none", "new_string": "x"}`},
		"memory_replace":         {`{}`, `{"label": "none", "old_string": "x", "new_string": "y"}`},
		"memory_rethink":         {`{}`, `{"label": "kept", "new_memory": "x\ny"}`},
		"memory_apply_patch":     {`{}`, `{"label": "none", "patch": "-x"}`},
		"archival_memory_insert": {`{}`, `{"content": "x"}`, `{"content": "x"}`},
		"archival_memory_search": {`{"query": "giraffe"}`, `{"query": "giraffe", "tags": "x"}`,
			`{"query": "", "offset": 9}`, `{"query": "", "top_k": 0}`},
		"archival_memory_update": {`{}`, `{"id": "none", "content": "x"}`},
		"archival_memory_delete": {`{}`, `{"id": "none"}`},
		"update_working_memory": {`{}`, `{"changes": {"field": "task", "text": "Ship it"}}`,
			`{"changes": {"field": "decisions", "action": "remove", "text": "x"}}`,
			`{"changes": {"field": "next", "text": "` + strings.Repeat("zebra ", 900) + `"}}`},
		"memory": {`{}`, `{"command": "create", "path": "m", "file_text": "x"}`,
			`{"command": "str_replace", "path": "/memories/", "old_string": "x"}`,
			`{"command": "insert", "path": "/memories/", "insert_text": "x"}`, `{"command": "delete", "path": "/memories/"}`,
			`{"command": "str_replace", "path": "m", "old_string": "z"}`, `{"command": "rename", "path": "m"}`},
	} {
		w.agent.Settings.Tools = []string{name}
		for _, args := range calls {
			got := w.run(t, name, args).Text
			for _, other := range slices.DeleteFunc(names(), func(n string) bool { return n == name }) {
				if mentioned(got, other) {
					t.Errorf("%s %s names %s: %.1500s", name, args, other, got)
				}
			}
		}
	}
}

// unread adds a file without text to the first folder.
func (w world) unread(t *testing.T) {
	t.Helper()
	_, err := w.pool.Exec(t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256)
		SELECT org, folder_key, 'unread.md', 'unread.md', 'text/plain', 0, ''
		FROM files WHERE org = $1 AND name = 'guide.md'`, w.org)
	if err != nil {
		t.Fatal(err)
	}
}
