package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/golden"
)

// transcript is a list of requests and answers, with ids numbered in order of appearance, and without times.
type transcript struct {
	*client
	bytes.Buffer
	ids map[string]string
}

var (
	uuids = regexp.MustCompile(`((?:[a-z_]+-)?)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// counts matches counts that depend on the ids in the counted texts.
	counts = regexp.MustCompile(`("(?:num_tokens_external_memory_summary|num_tokens_messages|` +
		`num_tokens_functions_definitions|context_window_size_current)": )\d+`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d| UTC| [AP]M UTC\+0000)`)
)

func (w *transcript) mask(text string) string {
	text = counts.ReplaceAllString(times.ReplaceAllString(text, "TIME"), `${1}"N"`)
	return uuids.ReplaceAllStringFunc(text, func(id string) string { // the UUID alone may occur with another prefix
		if w.ids[id] == "" {
			w.ids[id] = fmt.Sprintf("%s#%d", uuids.FindStringSubmatch(id)[1], len(w.ids)+1)
		}
		return w.ids[id]
	})
}

// step sends a request, and records it with the answer.
func (w *transcript) step(method, target, body string) {
	got := w.call(method, target, body)
	fmt.Fprintf(w, "%s %s %s\n%d", method, w.mask(target), w.mask(body), got.Code)
	var answer any
	if json.Unmarshal([]byte(got.Text), &answer) == nil {
		shortenTools(answer)
		encoder := json.NewEncoder(&maskedWriter{w})
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(answer); err != nil {
			w.t.Fatal(err)
		}
	}
	w.WriteString("\n")
}

type maskedWriter struct{ *transcript }

func (m *maskedWriter) Write(text []byte) (int, error) {
	return m.WriteString(" " + m.mask(string(text)))
}

// shortenTools removes the descriptions of tools, which have their own test.
func shortenTools(body any) {
	switch body := body.(type) {
	case []any:
		for _, item := range body {
			shortenTools(item)
		}
	case map[string]any:
		if body["json_schema"] != nil {
			body["json_schema"], body["description"] = "…", "…"
		}
		for _, item := range body {
			shortenTools(item)
		}
	}
}

// The transcript goes from nothing to an answered question. Clients see it, so review every change of it.
func TestWalk(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	w := &transcript{client: c, ids: map[string]string{}}
	w.step("GET", "/v1/models/", "")
	w.step("GET", "/v1/models/embedding", "")
	w.step("POST", "/v1/folders/", `{"name":"guide","description":"How to","embedding":"openai/any"}`)
	folder := fields(t, "{\"x\":"+c.must("GET", "/v1/folders/name/guide", "")+"}")["x"].(string)
	file := c.uploaded(folder, "setup.md", "# Setup\n\nInstall Postgres & pgvector.\nThen run the server.\n")
	w.step("GET", "/v1/folders/"+folder+"/files", "")
	w.step("GET", "/v1/folders/"+folder+"/files/"+file+"?include_content=true", "")
	w.step("GET", "/v1/folders/"+folder+"/passages", "")
	w.step("GET", "/v1/folders/metadata?include_detailed_per_source_metadata=true", "")
	agent := c.made("/v1/agents/", `{"name":"a","system":"Help.","tags":["x"],"model":"openai/gpt-4o-mini",`+
		`"embedding":null,"memory_blocks":[]}`)
	w.step("GET", "/v1/agents/"+agent, "")
	w.step("GET", "/v1/agents/"+agent+"/tools", "")
	w.step("POST", "/v1/agents/"+agent+"/tools/open_files/run", `{"args":{}}`)
	w.step("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
	w.step("GET", "/v1/agents/"+agent+"/folders", "")
	w.step("GET", "/v1/folders/"+folder+"/agents", "")
	w.step("GET", "/v1/agents/"+agent+"/files", "")
	w.step("PATCH", "/v1/agents/"+agent+"/files/close-all", "")
	w.step("PATCH", "/v1/agents/"+agent+"/files/"+file+"/open", "")
	w.step("PATCH", "/v1/agents/"+agent+"/files/"+file+"/close", "")
	w.step("POST", "/v1/agents/"+agent+"/tools/open_files/run", `{"args":{"file_requests":[{"file_name":"guide`+
		`/setup.md","offset":2,"length":1}]}}`)
	w.step("POST", "/v1/agents/"+agent+"/tools/grep_files/run", `{"args":{"pattern":"postgres"}}`)
	w.step("POST", "/v1/agents/"+agent+"/tools/semantic_search_files/run", `{"args":{"query":"install"}}`)
	w.step("POST", "/v1/agents/"+agent+"/tools/grep_files/run", `{"args":{"pattern":"("}}`)
	w.step("POST", "/v1/agents/"+agent+"/tools/no_such_tool/run", "")
	w.step("GET", "/v1/agents/"+agent+"/core-memory", "")
	w.step("POST", "/v1/agents/"+agent+"/recompile", "")
	w.step("GET", "/v1/agents/"+agent+"/messages", "")
	w.step("POST", "/v1/conversations/?agent_id="+agent, `{"summary":"Setting up"}`)
	w.step("GET", "/v1/conversations/?agent_id="+agent, "")
	w.step("GET", "/v1/agents/?include=agent.blocks", "")
	w.step("GET", "/v1/agents/count", "")
	w.step("GET", "/v1/tags/", "")
	w.step("PATCH", "/v1/agents/"+agent+"/sources/detach/"+folder, "")
	w.step("GET", "/v1/agents/"+agent+"/context", "")
	w.step("GET", "/v1/agents/"+agent+"/context?at_seq=1", "")
	w.step("DELETE", "/v1/folders/"+folder+"/"+file, "")
	w.step("DELETE", "/v1/folders/"+folder, "")
	w.step("DELETE", "/v1/agents/"+agent, "")
	w.step("DELETE", "/v1/agents/"+agent, "")
	checkGolden(t, "testdata/walk.txt", w.String())
}

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	golden.Check(t, path, got)
}
