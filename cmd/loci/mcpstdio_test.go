package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
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

// answersOf are what a program on standard input and output says to its input, by their ids; messages without one are
// those of "". It fails if the program does not end with its input.
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

// memoryServer is a server with an agent that has a block, and the program for it.
func memoryServer(t *testing.T) (p *program, c mcpCmd) {
	t.Helper()
	p = serve(t, "--database-url="+dbtest.EmptyURL(t))
	made := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a", "tool_set": "all",
		"memory_blocks": []any{map[string]any{"label": "human", "value": "Ada"}}})
	return p, mcpCmd{remote: remote{Addr: p.base}, Agent: made.ID}
}

// stateless is a line of the protocol's version without sessions. params are the fields of its params, as JSON.
func stateless(id int, method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n",
		id, method, params)
}

// Each result says that it is complete in the version without sessions, which requires it.
func TestResultsOnStdioSayThatTheyAreComplete(t *testing.T) {
	t.Parallel()
	_, c := memoryServer(t)
	got := answersOf(t, c, stateless(1, "server/discover", "")+stateless(2, "tools/list", "")+
		stateless(3, "tools/call", `"name":"list_files","arguments":{}`)+
		stateless(4, "tools/call", `"name":"list_files","arguments":{"nonsense":1}`)+
		stateless(5, "resources/list", "")+stateless(6, "resources/templates/list", "")+
		stateless(7, "resources/read", `"uri":"loci://`+c.Agent+`/blocks/human"`)+stateless(8, "prompts/list", "")+
		stateless(9, "prompts/get", `"name":"context"`))
	for id := 1; id <= 9; id++ {
		of := got[fmt.Sprint(id)]
		var is struct{ ResultType string }
		if len(of) != 1 || json.Unmarshal(of[0].Result, &is) != nil || is.ResultType != "complete" {
			t.Errorf("%d was answered with %+v, want one result of the type complete", id, of)
		}
	}
}
