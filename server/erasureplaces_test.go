package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// plantInWords stores a text in fields that usually hold words of Loci or of a provider: in an answer's model, ids and
// signatures, and in the type of a tool's source.
func (c *client) plantInWords(agent, text string) {
	c.t.Helper()
	c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"Hm?"},{"role":"assistant","model":%[1]s,
		"step_id":%[1]s,"run_id":%[1]s,"content":[{"type":"thinking","thinking":"Hm.","signature":%[1]s},
		{"type":"redacted_thinking","data":%[1]s},{"type":"text","text":"Yes."}]}]}`, quoted(text)))
	c.made("/v1/tools", fmt.Sprintf(`{"source_type":%s,"json_schema":{"name":"open_door","description":"Opens a door",
		"parameters":{"type":"object","properties":{}}}}`, quoted(text)))
}

// An erasure reaches the names of event consumers and the arguments of jobs. The report names each place, and the
// places that it does not reach.
func TestErasuresReachWhatIsOutsideOfTheMemories(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for _, name := range []string{"desk%20of%20Qzora%20Quill", "desk%20of%20qzora%20quill", "other"} {
		c.must("PUT", "/v1/agents/"+agent+"/consumers/"+name, `{"seq":1}`)
	}
	c.exec(`
		INSERT INTO river_job (kind, queue, state, args, max_attempts, finalized_at)
		VALUES ('kept', 'nobody', 'completed', jsonb_build_object('org', $1::integer, 'text', 'for Qzora Quill'), 1, now())`,
		c.org)
	e := c.erased("Qzora Quill")
	if e.Status != "completed" || len(e.Report.Left) > 0 {
		t.Errorf("the erasure ended as %s, and left %v", e.Status, e.Report.Left)
	}
	consumers := c.must("GET", "/v1/agents/"+agent+"/consumers", "")
	for _, name := range []string{`"desk of [erased]"`, `"desk of [erased] 2"`, `"other"`} {
		if !strings.Contains(consumers, name) {
			t.Errorf("the consumers lack %s: %s", name, consumers)
		}
	}
	var places []string
	for _, p := range e.Report.Places {
		places = append(places, p.Where+" "+p.Of)
	}
	for _, want := range []string{"event_consumers.name consumer desk of [erased] of agent " + agent, "river_job.args "} {
		if !slices.Contains(places, want) {
			t.Errorf("the report lacks %q: %q", want, places)
		}
	}
	remains := strings.Join(e.Report.Remains, "\n")
	for _, want := range []string{"Lines that the server has logged already are the operator's", "Backups",
		"write-ahead log"} {
		if !strings.Contains(remains, want) {
			t.Errorf("what remains lacks %q: %s", want, remains)
		}
	}
	if left := c.stored("quill"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

// An erasure finds a caller's text in fields that usually hold words of Loci or of a provider. Those words stay, even
// if they are the text to erase.
func TestAnErasureFindsATextAmongWords(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","model":"openai/qzoraword"}`)
	c.plantInWords(agent, "ft:gpt-4o:acme:Qzoraword")
	folder := c.made("/v1/folders", `{"name":"f"}`)
	for name, mediaType := range map[string]string{"a.odd": "text/qzoraword", "a.py": "text/x-python"} {
		body, form := form("file", name, mediaType, "The cat sat on the mat.")
		got := servertest.Send(c, "POST", "/v1/folders/"+folder+"/upload", body, append(c.headers(), "Content-Type", form)...)
		if got.Code != 200 {
			t.Fatalf("upload %s: got %d %s", name, got.Code, got.Text)
		}
		c.awaitFile(folder, fields(t, got.Text)["id"].(string))
	}
	tool := c.made("/v1/tools", `{"source_code":"def f():\n    \"Says hello\"","source_type":"python"}`)
	c.exec(`INSERT INTO model_factors (org, model, factor) VALUES ($1, 'openai/qzoraword', 1.1)`, c.org)
	for _, column := range []string{"messages.model", "messages.step_id", "messages.run_id", "messages.content",
		"tools.source_type", "files.media_type", "agents.model", "model_factors.model"} {
		if !slices.ContainsFunc(c.stored("qzoraword"), func(place string) bool {
			return strings.HasPrefix(place, column+": ")
		}) {
			t.Errorf("the text is not planted in %s", column)
		}
	}
	preview := c.must("POST", "/v1/erasures/preview", `{"texts":["qzoraword"]}`)
	for _, found := range []string{`"messages":5`, `"tools":1`, `"files":1`, `"agents":1`, `"model_factors":1`} {
		if !strings.Contains(preview, found) {
			t.Errorf("the preview lacks %s: %s", found, preview)
		}
	}
	if e := c.erased("qzoraword"); len(e.Report.Left) > 0 {
		t.Errorf("left: got %v", e.Report.Left)
	}
	c.erased("python")
	if left := c.stored("qzoraword"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
	stored := strings.Join(c.stored("erased", `"Hm."`), "\n")
	for _, want := range []string{`{"type":"reasoning","text":"Hm."},{"type":"redacted_reasoning"}`,
		"messages.model: ft:gpt-4o:acme:[erased]", "tools.source_type: ft:gpt-4o:acme:[erased]",
		"files.media_type: text/[erased]", "model_factors.model: openai/[erased]", "agents.model: openai/[erased]"} {
		if !strings.Contains(stored, want) {
			t.Errorf("lacks %q: %.2000s", want, stored)
		}
	}
	if got := fields(t, c.must("GET", "/v1/tools/"+tool, ""))["source_type"]; got != "python" {
		t.Errorf("the type of the source: got %v, want python", got)
	}
	if types := c.stored("text/x-python"); len(types) != 1 {
		t.Errorf("the media type of Python: got %q", types)
	}
}
