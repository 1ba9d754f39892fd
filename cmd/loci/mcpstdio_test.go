package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stdioMessage is a message of the program.
type stdioMessage struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  struct {
		Code    int
		Message string
	}
	Params json.RawMessage
}

// answersOf returns the program's messages on standard output for an input, by id. Messages without an id have the key
// "". It fails if the program does not end with its input.
func answersOf(t *testing.T, c mcpCmd, input string) map[string][]stdioMessage {
	t.Helper()
	var out bytes.Buffer
	errs := newLines()
	if err := c.Run(t.Context(), streams{out: &out, err: errs, in: strings.NewReader(input)}); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	all := map[string][]stdioMessage{}
	for line := range strings.Lines(out.String()) {
		var got stdioMessage
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("said %s: %v", line, err)
		}
		all[string(got.ID)] = append(all[string(got.ID)], got)
	}
	return all
}

// memoryServer returns the shared server with an agent that has blocks, and the program for the agent.
func memoryServer(t *testing.T) (p *program, c mcpCmd) {
	t.Helper()
	p = tenant(t)
	created := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a", "tool_set": "all",
		"memory_blocks": []any{map[string]any{"label": "human", "value": "Ada"},
			map[string]any{"label": "empty", "value": ""}}})
	return p, mcpCmd{remote: p.remote(), Agent: created.ID}
}

// stateless returns a line in the protocol version without sessions. params are the fields of the line's params, as
// JSON.
func stateless(id int, method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n",
		id, method, params)
}

// The protocol version without sessions requires that each result says that it is complete.
func TestResultsOnStdioSayThatTheyAreComplete(t *testing.T) {
	t.Parallel()
	_, c := memoryServer(t)
	got := answersOf(t, c, stateless(1, "server/discover", "")+stateless(2, "tools/list", "")+
		stateless(3, "tools/call", `"name":"list_files","arguments":{}`)+
		stateless(4, "tools/call", `"name":"list_files","arguments":{"nonsense":1}`)+
		stateless(5, "resources/list", "")+stateless(6, "resources/templates/list", "")+
		stateless(7, "resources/read", `"uri":"loci://`+c.Agent+`/blocks/human"`)+stateless(8, "prompts/list", "")+
		stateless(9, "prompts/get", `"name":"context"`)+
		stateless(10, "resources/read", `"uri":"loci://`+c.Agent+`/blocks/empty"`)+
		stateless(11, "resources/read", `"uri":"loci://`+c.Agent+`/blocks/none"`))
	for id := 1; id <= 10; id++ {
		answers := got[fmt.Sprint(id)]
		var result struct{ ResultType string }
		if len(answers) != 1 || json.Unmarshal(answers[0].Result, &result) != nil || result.ResultType != "complete" {
			t.Errorf("%d was answered with %+v, want one result of the type complete", id, answers)
		}
	}
	empty := string(got["10"][0].Result)
	if !strings.Contains(empty, `"text":""`) || strings.Count(empty, "resultType") != 1 {
		t.Errorf("an empty block is %s, want an empty text", empty)
	}
	if code := got["11"][0].Error.Code; code != -32602 {
		t.Errorf("an unknown resource has the code %d, want that of the version, -32602", code)
	}
}

// begin returns a line that begins a session in a protocol version.
func begin(version string) string {
	return `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
}

// A line that is no protocol message is answered. It ends nothing, and earlier requests are not lost.
func TestLinesThatAreNoMessagesEndNothing(t *testing.T) {
	t.Parallel()
	p, c := memoryServer(t)
	lines := []struct {
		line, id string
		code     int
	}{
		{`{}`, "null", -32600}, {`{"a":1}`, "null", -32600}, {`[]`, "null", -32600}, {`[{}]`, "null", -32600},
		{`5`, "null", -32600}, {`null`, "null", -32600}, {`"x"`, "null", -32600}, {`[1]`, "null", -32600},
		{`{`, "null", -32700},
		{`{"jsonrpc":"1.0","id":"a1","method":"ping"}`, `"a1"`, -32600},
		{`{"jsonrpc":2,"id":"a2","method":"ping"}`, `"a2"`, -32600},
		{`{"id":"a3","method":"ping"}`, `"a3"`, -32600},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":[],"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":"a4","method":5}`, `"a4"`, -32600},
		{`{"jsonrpc":"2.0","id":"a5","method":null}`, `"a5"`, -32600},
		{`{"jsonrpc":"2.0","id":"a6","method":""}`, `"a6"`, -32600},
		{`{"jsonrpc":"2.0","id":"a7"}`, `"a7"`, -32600},
		{`{"jsonrpc":"2.0","id":"a8","Method":"ping"}`, `"a8"`, -32600},
		{`{"jsonrpc":"2.0","method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","result":{}}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":"a9","error":5}`, `"a9"`, -32600},
		{`{"jsonrpc":"2.0","id":"a10","error":{"code":"x"}}`, `"a10"`, -32600},
		{`{"jsonrpc":"2.0","id":"a11","method":"ping","params":5}`, `"a11"`, -32602},
		{`{"jsonrpc":"2.0","id":"a12","method":"ping","params":[]}`, `"a12"`, -32602},
		{`{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}`, "null", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", "null", -32600},
		{`[{"jsonrpc":"2.0","id":"a13","method":"ping"}]`, "null", -32600}, // this version has no batches
		{`{"jsonrpc":"2.0","id":"a14","method":"ping","params":{"x":"` + strings.Repeat("x", 4<<20) + `"}}`, "null", -32600},
		{`{"jsonrpc":"2.0","method":"notifications/nobody"}`, "", 0},
		{`{"jsonrpc":"2.0","id":"nobody","result":{}}`, "", 0},
		{`{"jsonrpc":"2.0","id":"nobody","error":{"code":1,"message":"x"}}`, "", 0},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`, "", 0},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, "", 0},
	}
	input, want := begin("2025-06-18")+
		`{"jsonrpc":"2.0","id":"r","method":"tools/call","params":{"name":"remember_turns","arguments":{"turns":[`+
		`{"role":"user","text":"Ada likes tea."}]}}}`+"\n", map[string][]int{"\"begin\"": {0}, "\"r\"": {0}, "\"last\"": {0}}
	for _, l := range lines {
		input += l.line + "\n"
		if l.id != "" {
			want[l.id] = append(want[l.id], l.code)
		}
	}
	input += `{"jsonrpc":"2.0","id":"last","method":"ping"}`
	got := map[string][]int{}
	for id, all := range answersOf(t, c, input) {
		for _, one := range all {
			got[id] = append(got[id], one.Error.Code)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the codes of the answers, by their ids (-want +got):\n%s", diff)
	}
	if _, log := p.send("GET", "/v1/agents/"+c.Agent+"/messages", nil); !strings.Contains(string(log), "Ada likes tea.") {
		t.Errorf("the turn is not stored: %s", log)
	}
}

// A batch is answered as a whole, without answers to its notifications. After its last answer, the input may end.
func TestBatchesOnStdioAreAnswered(t *testing.T) {
	t.Parallel()
	_, c := memoryServer(t)
	for _, version := range []string{"2024-11-05", "2025-03-26"} {
		var out bytes.Buffer
		input := begin(version) + `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}},` +
			`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_files","arguments":{}}},` +
			`{"jsonrpc":"2.0","method":"notifications/nobody"},{"jsonrpc":"2.0","id":4,"method":"ping"}]` + "\n" +
			`[{"jsonrpc":"2.0","method":"notifications/initialized"}]` + "\n"
		if err := c.Run(t.Context(), streams{out: &out, err: newLines(), in: strings.NewReader(input)}); err != nil {
			t.Fatal(err)
		}
		var got []stdioMessage
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || len(lines) != 2 || len(got) != 2 ||
			string(got[0].ID)+string(got[1].ID) != "34" || got[0].Result == nil || got[1].Result == nil {
			t.Errorf("%s: got %s (%v), want the answers to initialize, 3 and 4", version, &out, err)
		}
	}
}

// A client on standard input and output can follow resources. The acknowledgement names the existing ones. The program
// ends with its input.
func TestResourcesAreFollowedOnStdio(t *testing.T) {
	t.Parallel()
	p, c := memoryServer(t)
	input, toProgram := io.Pipe()
	fromProgram, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(t.Context(), streams{out: output, err: newLines(), in: input})
		output.Close()
	}()
	block := "loci://" + c.Agent + "/blocks/human"
	wanted := `"notifications":{"resourceSubscriptions":["` + block + `","loci://` + c.Agent + `/blocks/none","bogus"]}`
	if _, err := io.WriteString(toProgram, stateless(1, "subscriptions/listen", wanted)); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(fromProgram)
	next := func(method string, params any) {
		t.Helper()
		var got stdioMessage
		for got.Method != method {
			if !said.Scan() || json.Unmarshal(said.Bytes(), &got) != nil || got.ID != nil {
				t.Fatalf("said %s (%v), want %s", said.Bytes(), said.Err(), method)
			}
		}
		if err := json.Unmarshal(got.Params, params); err != nil {
			t.Fatal(err)
		}
	}
	var honoured struct {
		Notifications struct{ ResourceSubscriptions []string }
	}
	next("notifications/subscriptions/acknowledged", &honoured)
	if got := honoured.Notifications.ResourceSubscriptions; len(got) != 1 || got[0] != block {
		t.Errorf("acknowledged %v, want %s alone", got, block)
	}
	if status, answer := p.send("PATCH", "/v1/agents/"+c.Agent+"/core-memory/blocks/human",
		map[string]any{"value": "Ada likes tea."}); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	var updated struct{ URI string }
	next("notifications/resources/updated", &updated)
	if updated.URI != block {
		t.Errorf("%s is said to have changed, want %s", updated.URI, block)
	}
	toProgram.Close()
	for said.Scan() { // the program's last messages
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
