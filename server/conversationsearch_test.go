package server_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// tool runs an agent's tool, and returns the text for the model.
func (c *client) tool(agent, name, args string) string {
	c.t.Helper()
	run := fields(c.t, c.must("POST", "/v1/agents/"+agent+"/tools/"+name+"/run", `{"args":`+args+`}`))
	if run["status"] != "success" {
		c.t.Fatalf("%s(%s): %v", name, args, run["func_return"])
	}
	return run["func_return"].(string)
}

// contains checks that a text contains some parts.
func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// proposed returns the arguments of a call that a result proposes as JSON; the result has them as (id="x", offset=3).
func proposed(t *testing.T, text, tool string) string {
	t.Helper()
	found := regexp.MustCompile(`call: ` + tool + `\((.*)\)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no call of %s is proposed in:\n%s", tool, text)
	}
	return "{" + regexp.MustCompile(`(\w+)=`).ReplaceAllString(found[1], `"$1":`) + "}"
}

// An agent without a folder searches captured messages with a question, reads around a hit, and reads all of a long
// result.
func TestACapturedConversationIsFoundAndReadAround(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"timezone":"Asia/Tokyo"}`)
	var report strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&report, "test %d passed in %d ms\n", i, i%7)
	}
	report.WriteString("test 5000 FAILED: Größe is 3, want 4\n")
	long, err := json.Marshal(report.String())
	if err != nil {
		t.Fatal(err)
	}
	c.capture(agent, `{"messages":[
		{"role":"user","name":"Ann","content":"Which database does the billing service use?",
		"created_at":"2024-01-31T15:30:00Z"},
		{"role":"assistant","content":"It moved from MySQL to CockroachDB last spring.","created_at":"2024-01-31T15:31:00Z"},
		{"role":"user","name":"Ann","content":"Thanks. Run the tests.","created_at":"2024-01-31T15:32:00Z"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run_tests",
		"arguments":"{\"suite\":\"all\"}"}}],"created_at":"2024-01-31T15:33:00Z"},
		{"role":"tool","tool_call_id":"c1","content":`+string(long)+`,"created_at":"2024-01-31T15:34:00Z"}]}`)

	hits := c.tool(agent, "conversation_search", `{"query":"what did billing move to, CockroachDB?"}`)
	contains(t, "the search", hits, "Found ", "=== assistant, 2024-02-01 00:31 JST, ",
		"  It moved from MySQL to CockroachDB last spring.", "Note: Ranked by words")
	if strings.Index(hits, "CockroachDB last spring") > strings.Index(hits, "To read around") {
		t.Errorf("the answer is not the first hit:\n%s", hits)
	}
	around := c.tool(agent, "conversation_search", proposed(t, hits, "conversation_search"))
	contains(t, "what is around", around, ", 6 of the 6 of the default conversation",
		": user (Ann), 2024-02-01 00:30 JST", "billing service use?",
		`run_tests({"suite":"all"})`, "test 0 passed", "To read on, call: expand(id=\"clip-")

	rest := c.tool(agent, "expand", proposed(t, around, "expand"))
	contains(t, "the stretch", rest, fmt.Sprintf(" of %d\n", report.Len()), "To read on, call: expand(")
	failed := c.tool(agent, "expand", fmt.Sprintf(`{"id":%q,"pattern":"FAILED"}`, clipIDs.FindString(around)))
	contains(t, "the lines", failed, "5001 (offset ", "): test 5000 FAILED: Größe is 3, want 4",
		"No more lines to show.")

	// Over REST, the bytes are the same as in the captured text.
	var e recall.Expansion
	target := "/v1/agents/" + agent + "/expand/" + clipIDs.FindString(around)
	if err := json.Unmarshal([]byte(c.must("GET", target+"?limit=1048576", "")), &e); err != nil ||
		e.Text != report.String() || e.NextOffset != nil {
		t.Errorf("expanded to %d bytes, next %v, %v; want the %d that came in", len(e.Text), e.NextOffset, err, report.Len())
	}
	if err := json.Unmarshal([]byte(c.must("GET", target+"?pattern="+url.QueryEscape("Gr.ße is \\d"), "")),
		&e); err != nil || len(e.Lines) != 1 || e.Lines[0].Number != 5001 {
		t.Errorf("lines are %+v, %v; want number 5001", e.Lines, err)
	}
	for query, want := range map[string]int{"limit=0": 422, "limit=1048577": 422, "offset=-1": 422, "offset=9999999": 422,
		"pattern=" + url.QueryEscape("(?!x)"): 422} {
		if got := c.call("GET", target+"?"+query, ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", query, got.Code, got.Text, want)
		}
	}
	for id, want := range map[string]int{"clip-1": 422, "clip-123e4567-e89b-42d3-8456-426614174000": 404,
		"message-123e4567-e89b-42d3-8456-426614174000": 404} {
		if got := c.call("GET", "/v1/agents/"+agent+"/expand/"+id, ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", id, got.Code, got.Text, want)
		}
	}
}

// A date without a time is that day in the agent's time zone, in every argument.
func TestADateIsADayOfTheAgentsZone(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"timezone":"Asia/Tokyo"}`)
	c.capture(agent, `{"messages":[{"role":"user","content":"dragon one","created_at":"2025-04-15"},
		{"role":"user","content":"dragon two","date":"2025-04-15T12:00:00"}]}`)
	base := "/v1/agents/" + agent
	passage := c.must("POST", base+"/archival-memory", `{"text":"dragon fact","created_at":"2025-04-15"}`)
	contains(t, "a passage of a day", passage, `"created_at":"2025-04-14T15:00:00Z"`)
	contains(t, "messages of a day", c.must("GET", base+"/messages", ""), `"date":"2025-04-14T15:00:00`,
		`"date":"2025-04-15T03:00:00`)
	day := `"start_date":"2025-04-15","end_date":"2025-04-15","agent_id":"` + agent + `"`
	for _, target := range []string{"/v1/messages/search", "/v1/agents/messages/search", "/v1/passages/search"} {
		contains(t, target, c.must("POST", target, `{"query":"dragon",`+day+`}`), "dragon")
	}
	for _, args := range []string{`{"query":"dragon","start_date":"2025-04-15","end_date":"2025-04-15"}`,
		`{"query":"What was said on 15 April 2025?"}`} {
		contains(t, args, c.tool(agent, "conversation_search", args), "dragon one", "dragon two")
	}
	contains(t, "passages of a day", c.must("GET", base+
		"/archival-memory/search?query=dragon&start_datetime=2025-04-15&end_datetime=2025-04-15", ""), "dragon fact")
	talk := c.made("/v1/conversations/?agent_id="+agent, "{}")
	contains(t, "the last message of a conversation", c.must("PATCH", "/v1/conversations/"+talk,
		`{"last_message_at":"2025-04-15"}`), `"last_message_at":"2025-04-14T15:00:00Z"`)
	c.capture(agent, `{"conversation_id":"`+talk+`","messages":[{"role":"user","content":"dragon three",
		"created_at":"2025-04-15"}]}`)
	contains(t, "a conversation by its id", c.must("POST", "/v1/messages/search", `{"query":"dragon","conversation_id":"`+
		talk+`","start_date":"2025-04-15","end_date":"2025-04-15"}`), "dragon three")
}

// An archive has the time zone of the agents that have it attached; UTC if they have different zones, or if no agent
// has it.
func TestADateIsADayOfTheArchivesZone(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	archive := c.made("/v1/archives", `{"name":"a"}`)
	n := 0
	inserted := func(what, want string) {
		t.Helper()
		n++
		body := fmt.Sprintf(`{"text":"fact %d","created_at":"2025-04-15"}`, n)
		contains(t, what, c.must("POST", "/v1/archives/"+archive+"/passages", body), want)
		n++
		body = fmt.Sprintf(`{"passages":[{"text":"fact %d","created_at":"2025-04-15"}]}`, n)
		contains(t, what+", a batch", c.must("POST", "/v1/archives/"+archive+"/passages/batch", body), want)
		contains(t, what+", a search", c.must("POST", "/v1/passages/search", fmt.Sprintf(
			`{"query":"%d","archive_id":%q,"start_date":"2025-04-15","end_date":"2025-04-15"}`, n, archive)),
			fmt.Sprintf("fact %d", n))
	}
	attach := func(zone string) {
		agent := c.made("/v1/agents", `{"timezone":"`+zone+`"}`)
		c.must("PATCH", "/v1/agents/"+agent+"/archives/attach/"+archive, "")
	}
	inserted("of no agent", `"created_at":"2025-04-15T00:00:00Z"`)
	attach("Asia/Tokyo")
	inserted("of one agent", `"created_at":"2025-04-14T15:00:00Z"`)
	attach("Asia/Tokyo")
	inserted("of two agents of one zone", `"created_at":"2025-04-14T15:00:00Z"`)
	attach("Europe/Berlin")
	inserted("of agents of two zones", `"created_at":"2025-04-15T00:00:00Z"`)
}

// An operator can restrict the tools to the conversation that calls them, with the agent's setting or in the request.
func TestRecallIsKeptToOneConversation(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"shared"}`)
	open := func(pin string) (id, message string, seq int64) {
		id = c.made("/v1/conversations/?agent_id="+agent, "{}")
		ids := c.append(agent, id, draft(recall.User, said("My PIN is "+pin+".")),
			draft(recall.Assistant, call("c"+pin, "store", `{"pin":"`+pin+`"}`)),
			draft(recall.Tool, returned("c"+pin, strings.Repeat("The PIN is "+pin+".\n", 5_000))))
		m, err := c.server.Recall.Message(t.Context(), c.org, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		return id, m.ID, m.Seq
	}
	ann, _, _ := open("1111")
	_, message, seq := open("2222")
	clip := clipIDs.FindString(c.tool(agent, "conversation_search", `{"around":"`+message+`"}`))
	if clip == "" {
		t.Fatal("Bob's result was not cut")
	}
	run := func(name, args, options string) string {
		return c.must("POST", "/v1/agents/"+agent+"/tools/"+name+"/run", `{"args":`+args+options+`}`)
	}
	calls := []struct{ name, args string }{
		{"conversation_search", `{"query":"PIN"}`},
		{"conversation_search", `{"limit":50}`},
		{"conversation_search", `{"around":"` + message + `"}`},
		{"expand", `{"id":"` + message + `"}`},
		{"expand", `{"id":"` + clip + `"}`},
		{"expand", fmt.Sprintf(`{"id":"seq 1-%d"}`, seq)},
		{"expand", fmt.Sprintf(`{"id":"seq %d"}`, seq)},
	}
	check := func(label, options string, finds bool) {
		t.Helper()
		for _, call := range calls {
			if got := run(call.name, call.args, options); strings.Contains(got, "2222") != finds {
				t.Errorf("%s, %s%s: finds Bob's PIN: %t, want %t:\n%.600s", label, call.name, call.args, !finds, finds, got)
			}
		}
	}
	calls[5].args = fmt.Sprintf(`{"id":"seq %d-%d"}`, seq, seq+1)
	check("not kept", "", true)
	check("not kept, in Ann's", `,"conversation_id":"`+ann+`"`, true)
	check("by the request", `,"conversation_id":"`+ann+`","recall_scope":"conversation"`, false)
	check("by the request, in the default conversation", `,"recall_scope":"conversation"`, false)
	c.must("PATCH", "/v1/agents/"+agent, `{"recall_scope":"conversation"}`)
	check("by the agent", `,"conversation_id":"`+ann+`"`, false)
	check("the request does not widen", `,"conversation_id":"`+ann+`","recall_scope":"agent"`, false)
	contains(t, "Ann's own PIN", run("conversation_search", `{"query":"PIN"}`, `,"conversation_id":"`+ann+`"`), "1111")
	if got := c.must("GET", "/v1/agents/"+agent, ""); !strings.Contains(got, `"recall_scope":"conversation"`) {
		t.Errorf("the agent: %s", got)
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"name":"renamed"}`)
	check("after another change", `,"conversation_id":"`+ann+`"`, false)
	c.must("PATCH", "/v1/agents/"+agent, `{"recall_scope":"agent"}`)
	check("set free", `,"conversation_id":"`+ann+`"`, true)
	if got := c.call("POST", "/v1/agents/"+agent+"/tools/expand/run",
		`{"conversation_id":"conv-123e4567-e89b-42d3-8456-426614174000"}`); got.Code != 404 {
		t.Errorf("in a conversation that does not exist: got %d %s", got.Code, got.Text)
	}
}

func TestToolsOfConversationsBelongToEveryAgent(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"tool_set":"all"}`)
	list := func() string {
		return strings.Join(namesOf(t, c.must("GET", "/v1/agents/"+agent+"/tools?order=asc&limit=50", "")), " ")
	}
	const always = "conversation_search expand core_memory_append core_memory_replace memory_insert memory_replace " +
		"memory_rethink memory_apply_patch memory update_working_memory " +
		"archival_memory_insert archival_memory_search archival_memory_update archival_memory_delete"
	if got := list(); got != always {
		t.Errorf("without a folder: %s", got)
	}
	folder := c.made("/v1/folders", `{"name":"f"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
	if got := list(); got != "open_files grep_files semantic_search_files list_files close_files "+always {
		t.Errorf("with a folder: %s", got)
	}
	c.must("PATCH", "/v1/agents/"+agent+"/folders/detach/"+folder, "")
	got := c.must("POST", "/v1/agents/"+agent+"/tools/open_files/run", "")
	if fields(t, got)["status"] != "error" || !strings.Contains(got, "it comes with a folder of files") {
		t.Errorf("open_files without a folder: got %s, want an error that says so", got)
	}
}

// A search for one message passes over those that say nothing, however many there are.
func TestASearchPassesOverMessagesThatSayNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{}`)
	var silent strings.Builder
	for i := range 30 {
		fmt.Fprintf(&silent, `,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function",
			"function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c%[1]d","content":"nothing"}`, i)
	}
	c.must("POST", "/v1/agents/"+agent+"/messages/capture", `{"messages":[{"role":"user","content":"The heron is blue."}`+
		silent.String()+`]}`)
	for limit := range 3 {
		body := fmt.Sprintf(`{"query":"","agent_id":%q,"limit":%d}`, agent, limit+1)
		if got := c.must("POST", "/v1/messages/search", body); strings.Count(got, "The heron is blue.") != 1 {
			t.Errorf("%s: got %s, want the text once", body, got)
		}
	}
}
