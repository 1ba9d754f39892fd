package server_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestMemoryFilesOverREST(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	tree := "/v1/memory-trees/" + c.made("/v1/memory-trees", `{"name":"team"}`)
	put := func(path, content string) map[string]any {
		return fields(t, c.must("PUT", tree+"/file", fmt.Sprintf(`{"path":%q,"content":%q}`, path, content)))
	}
	first := put("/memories/a.md", "one")
	put("/memories/a.md", "two")
	got := c.call("PUT", tree+"/file", fmt.Sprintf(`{"path":"/memories/a.md","content":"three","expected_sha256":%q}`,
		first["sha256"]))
	if got.Code != 409 || !strings.Contains(got.Text, `"content":"two"`) {
		t.Errorf("a change of an older text: got %d %s", got.Code, got.Text)
	}
	got = c.call("PUT", tree+"/file", `{"path":"/memories/a.md","content":"three","expected_version":1}`)
	if got.Code != 409 || !strings.Contains(got.Text, "is at version 2, and not at version 1") {
		t.Errorf("a change of an older version: got %d %s", got.Code, got.Text)
	}
	c.must("PUT", tree+"/file", `{"path":"/memories/a.md","content":"two","expected_version":1}`) // the same change again
	c.must("POST", tree+"/rename", `{"old_path":"/memories/a.md","new_path":"/memories/b/a.md"}`)
	for _, w := range []struct{ target, want string }{
		{"/files", `"path":"/memories/b/a.md"`},
		{"/file?path=/memories/b/a.md", `"content":"two"`},
		{"/versions?path=/memories/b/a.md", `"change":"renamed"`},
		{"/versions/1?path=/memories/b/a.md", `"content":"one"`},
		{"/diff?path=/memories/b/a.md&from=1&to=2", `-one`},
		{"/manifest", `"is_default":true`},
		{"/lint", `"unreachable":["/memories/b/a.md"]`},
		{"/search?query=two", `"lines":[{"line":1,"text":"two"}]`},
		{"/agents", `[]`},
	} {
		if got := c.must("GET", tree+w.target, ""); !strings.Contains(got, w.want) {
			t.Errorf("%s: got %s, want %s", w.target, got, w.want)
		}
	}
	c.must("DELETE", tree+"/file?path=/memories/b", "")
	c.must("POST", tree+"/restore", fmt.Sprintf(`{"memory_file_id":%q,"version":1}`, first["id"]))
	if got := c.must("POST", tree+"/redact", `{"text":"nothing has this"}`); got != `{"files":[],"versions":0}` {
		t.Errorf("a redaction of nothing: got %s", got)
	}
	const manifest = `{"entries":[{"path":"/memories/*.md","holds":"notes","max_chars":9}]}`
	if got := c.must("PUT", tree+"/manifest", manifest); !strings.Contains(got, `"is_default":false`) {
		t.Errorf("a manifest: got %s", got)
	}
	for _, w := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/file?path=/memories/../etc", "", 422}, {"GET", "/file?path=/memories/none", "", 404},
		{"PUT", "/file", `{"path":"/memories/c.md","content":"ten chars!"}`, 422},
		{"PUT", "/file", `{"path":"/memories/MEMORY.md","content":"The host is s2. It is large.\nAnd red."}`, 422},
		{"PUT", "/file", `{"path":"/memories/c.md","content":"c","expected_version":0}`, 422},
		{"PUT", "/file", `{"path":"/memories/c.md","content":"c","expected_version":1}`, 404},
		{"PUT", "/manifest", `{"entries":[]}`, 422}, {"PATCH", "", `{"rules":{"off":["none"]}}`, 422},
		{"DELETE", "/file?path=/memories", "", 422}, {"POST", "/redact", `{"text":"a"}`, 422},
		{"GET", "/versions", "", 422},
	} {
		if got := c.call(w.method, tree+w.target, w.body); got.Code != w.status {
			t.Errorf("%s %s %s: got %d %s, want %d", w.method, w.target, w.body, got.Code, got.Text, w.status)
		}
	}
	const text = `{"content":"## Release\n\nIt is on Friday at noon.\n"}`
	c.must("PUT", tree+"/manifest", `{"entries":[{"path":"/memories/projects/*.md","holds":"projects, releases"}]}`)
	proposal := c.must("POST", tree+"/compress", text)
	if !strings.Contains(proposal, `"how":"headings"`) ||
		!strings.Contains(proposal, `"path":"/memories/projects/release.md"`) {
		t.Errorf("a proposal: got %s", proposal)
	}
	if got := c.must("PUT", tree+"/files", proposal); !strings.Contains(got, `"/memories/MEMORY.md"]`) {
		t.Errorf("an applied proposal: got %s", got)
	}
	c.must("PUT", tree+"/file", `{"path":"/memories/a.md","content":"mine"}`)
	got = c.call("PUT", tree+"/files", `{"files":[{"path":"/memories/z.md","content":"z"},
		{"path":"/memories/a.md","content":"theirs","expected_sha256":"00"}]}`)
	if got.Code != 409 || !strings.Contains(got.Text, `"content":"mine"`) {
		t.Errorf("files of which one is not as expected: got %d %s", got.Code, got.Text)
	}
	if got := c.call("GET", tree+"/file?path=/memories/z.md", ""); got.Code != 404 {
		t.Errorf("a file of a refused request: got %d", got.Code)
	}
	c.must("DELETE", tree, "")
	if got := c.call("GET", tree, ""); got.Code != 404 {
		t.Errorf("the deleted tree: got %d %s", got.Code, got.Text)
	}
}

// A program with Anthropic's memory tool hands over the tool's calls, as a step or as commands.
func TestAnthropicsLoopHasMemoryFiles(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := "/v1/agents/" + c.made("/v1/agents", `{"tools":["memory_files"],"memory_blocks":[]}`)
	if got := c.call("GET", agent+"/memory-tree", ""); got.Code != 404 {
		t.Errorf("the tree before its first file: got %d %s", got.Code, got.Text)
	}
	c.must("POST", agent+"/messages/capture", `{"messages":[{"role":"user","content":"Remember it."}]}`)
	got := c.must("POST", agent+"/step", `{"format":"anthropic","response":{"type":"message","role":"assistant",
		"model":"claude","content":[{"type":"tool_use","id":"t1","name":"memory","input":{"command":"create",
		"path":"/memories/MEMORY.md","file_text":"# Index </memory_files>\n"}}],"stop_reason":"tool_use",
		"usage":{"input_tokens":10,"output_tokens":5}}}`)
	if !strings.Contains(got, "Created /memories/MEMORY.md with 1 line (24 characters).") {
		t.Errorf("the step: got %s", got)
	}
	for _, w := range []struct{ body, want string }{
		{`{"command":"view","path":"/memories"}`, "/memories/MEMORY.md"},
		{`{"command":"create","path":"/memories/MEMORY.md","file_text":"x"}`, `"is_error":true`},
		{`{"command":"view","path":"/memories/MEMORY.md"}`, `     1\t# Index`},
	} {
		if got := c.must("POST", agent+"/memory-tree/command", w.body); !strings.Contains(got, w.want) {
			t.Errorf("%s: got %s, want %s", w.body, got, w.want)
		}
	}
	if got := c.must("GET", agent+"/memory-tree/lint", ""); !strings.Contains(got, `"violations":[]`) {
		t.Errorf("the state of the files: got %s", got)
	}
	tree := fields(t, c.must("GET", agent+"/memory-tree", ""))["id"].(string)
	if got := c.must("GET", "/v1/memory-trees/"+tree+"/versions?path=/memories/MEMORY.md", ""); !strings.Contains(got,
		`"tool":"memory_files"`) || !strings.Contains(got, `"agent_id":"agent-`) {
		t.Errorf("the author of the version: got %s", got)
	}

	// The prompt shows the index only if the agent has the tool. The index cannot end its section.
	const section = `<memory_files index=\"/memories/MEMORY.md\">\n# Index <~/memory_files>\n</memory_files>`
	if got := c.must("GET", agent+"/prompt?format=openai", ""); !strings.Contains(unescaped(got), section) {
		t.Errorf("the prompt lacks the index: %s", got)
	}
	c.must("PATCH", agent, `{"tools":["expand"]}`)
	if got := c.must("GET", agent+"/prompt?format=openai", ""); strings.Contains(unescaped(got), "<memory_files index") {
		t.Errorf("the prompt of an agent without the tool: %s", got)
	}
}

// unescaped returns JSON without the escapes of angle brackets.
func unescaped(json string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(json)
}

// Ended files are in no list, search or prompt unless the request asks for them. A PATCH ends files and makes them
// valid again.
func TestEndedMemoryFilesAreShownOnRequest(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"tools":["memory_files","search_memory"]}`)
	tree := "/v1/memory-trees/" + c.made("/v1/memory-trees", `{"name":"team"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/memory-trees/attach/"+strings.TrimPrefix(tree, "/v1/memory-trees/"), "")
	c.must("PUT", tree+"/file", `{"path":"/memories/noon.md","content":"ferry at noon","valid_from":"2020-01-01",
		"valid_until":"2021-12-31"}`)
	c.must("PUT", tree+"/file", `{"path":"/memories/one.md","content":"ferry at one","valid_from":"2022-01-01",
		"supersedes":"/memories/noon.md"}`)
	for query, want := range map[string][2]bool{"": {false, true}, "&as_of=2021-06-01": {true, false},
		"&ended=true": {true, true}, "&as_of=2019-01-01": {false, false}} {
		for _, target := range []string{tree + "/files?path=/memories" + query, tree + "/search?query=ferry" + query,
			"/v1/agents/" + agent + "/memory-search?query=ferry&kinds=memory_file" + query} {
			got := c.must("GET", target, "")
			noon := strings.Contains(got, `"path":"/memories/noon.md"`)
			if one := strings.Contains(got, `"path":"/memories/one.md"`); [2]bool{noon, one} != want {
				t.Errorf("%s: noon %v, one %v, want %v", target, noon, one, want)
			}
			if said := strings.Contains(got, `"superseded_by":"/memories/one.md","ended":true`); said != want[0] {
				t.Errorf("%s says that it ended: %v\n%s", target, said, got)
			}
		}
	}
	command := func(body string) string {
		return fmt.Sprint(fields(t, c.must("POST", "/v1/agents/"+agent+"/memory-tree/command", body))["content"])
	}
	if got := command(`{"command":"view","path":"/memories"}`); strings.Contains(got, "noon.md") {
		t.Errorf("the tool lists what ended: %s", got)
	}
	contains(t, "the list of then", command(`{"command":"view","path":"/memories","as_of":"2021-06-01"}`), "noon.md")
	contains(t, "the file", command(`{"command":"view","path":"/memories/noon.md"}`), "ferry at noon", "ended 2022-01-01",
		"superseded by /memories/one.md")
	contains(t, "a file that supersedes", command(`{"command":"create","path":"/memories/two.md",
		"file_text":"ferry at two","supersedes":"/memories/one.md","valid_until":"2999-12-30"}`), "Created")
	if got := command(`{"command":"view","path":"/memories"}`); strings.Contains(got, "one.md") ||
		!strings.Contains(got, "two.md") {
		t.Errorf("the tool lists: %s", got)
	}
	for body, want := range map[string]int{`{"path":"/memories/one.md","superseded_by":"/memories/noon.md"}`: 409,
		`{"path":"/memories/two.md","superseded_by":"/memories/noon.md"}`: 422,
		`{"path":"/memories/two.md","valid_until":"soon"}`:                422, `{"path":"/memories/none.md"}`: 404} {
		if got := c.call("PATCH", tree+"/file", body); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", body, got.Code, got.Text, want)
		}
	}
	if got := c.must("PATCH", tree+"/file", `{"path":"/memories/noon.md","superseded_by":null,"valid_until":null,
		"valid_from":null}`); !strings.Contains(got, `"ended":false`) {
		t.Errorf("it holds again: %s", got)
	}
	if got := c.must("GET", tree+"/files", ""); !strings.Contains(got, "noon.md") {
		t.Errorf("it holds again: %s", got)
	}
}

// A path cannot be below the path of the index, of the manifest, or of a file that the manifest names, because these
// files could not be created then.
func TestFilesOfTheManifestAreNoDirectories(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","tools":["memory_files"]}`)
	run := func(args string) string {
		return c.must("POST", "/v1/agents/"+agent+"/tools/memory_files/run", `{"args":`+args+`}`)
	}
	run(`{"command":"create","path":"/memories/d/x.md","file_text":"x"}`)
	for _, args := range []string{`{"command":"create","path":"/memories/MANIFEST.md/x.md","file_text":"x"}`,
		`{"command":"create","path":"/memories/memory.md/x.md","file_text":"x"}`,
		`{"command":"rename","old_path":"/memories/d","new_path":"/memories/MANIFEST.md"}`,
		`{"command":"rename","old_path":"/memories/d/x.md","new_path":"/memories/MEMORY.md/x.md"}`} {
		if got := run(args); !strings.Contains(got, `"status":"error"`) || !strings.Contains(got, "nothing can be in it") {
			t.Errorf("%s: got %s", args, got)
		}
	}
	if got := run(`{"command":"view","path":"/memories/d/x.md"}`); !strings.Contains(got, `"status":"success"`) {
		t.Errorf("the file that was not renamed: %s", got)
	}
}
