package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestTheRegistrysEntryHasTheVersionOfTheSource(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../server.json")
	if err != nil {
		t.Fatal(err)
	}
	var entry struct{ Version, Description string }
	if err := json.Unmarshal(raw, &entry); err != nil || entry.Version != release || len(entry.Description) > 100 {
		t.Errorf("got %+v, %v, want the version %s and a description of at most 100 bytes", entry, err, release)
	}
}

// stdio returns a client of a program that serves MCP on its standard input and output.
func stdio(t *testing.T, c mcpCmd) (session *sdk.ClientSession, ended <-chan error) {
	t.Helper()
	input, toProgram := io.Pipe()
	fromProgram, output := io.Pipe()
	errs, done := newLines(), make(chan error, 1)
	go func() {
		err := c.Run(t.Context(), streams{out: output, err: errs, in: input})
		output.Close()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, errs)
		}
		done <- err
	}()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.IOTransport{Reader: fromProgram, Writer: toProgram}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	return session, done
}

// rememberTea stores a turn, and returns the tool's text.
func rememberTea(t *testing.T, session *sdk.ClientSession) string {
	t.Helper()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "remember_turns",
		Arguments: json.RawMessage(`{"turns":[{"role":"user","text":"Ada likes tea.","id":"1"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	return got.Content[0].(*sdk.TextContent).Text
}

// A line that is not JSON is answered, and does not end the session. All requests before the end of the input are
// answered.
func TestBrokenLinesAndTheEndOfTheInputLoseNothing(t *testing.T) {
	t.Parallel()
	_, c := memoryServer(t)
	input := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" + "garbage\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"remember_turns","arguments":{"turns":[` +
		`{"role":"user","text":"Ada likes tea."}]}}}`) // without a line break
	var out bytes.Buffer
	if err := c.Run(t.Context(), streams{out: &out, err: newLines(), in: input}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,"result"`, `"id":null,"error":{"code":-32700`, "Stored 1 of 1 turns."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s was not answered: %s", want, &out)
		}
	}
}

// A message that breaks the protocol is answered with the protocol's codes and words, and does not end the session.
func TestWrongMessagesOnStdioAreAnswered(t *testing.T) {
	t.Parallel()
	_, c := memoryServer(t)
	call := func(id, method, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + "}\n"
	}
	begin := `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`
	input := strings.NewReader(call("1", "tools/list", "{}") + call("2", "initialize", `{"protocolVersion":5}`) +
		call("3", "initialize", begin) + call("3", "ping", "{}") +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + call("4", "tools/call", `{"name":5}`) +
		call("1.5", "ping", "{}") + call("5", "nope", "{}") + call("6", "ping", "{}"))
	var out bytes.Buffer
	if err := c.Run(t.Context(), streams{out: &out, err: newLines(), in: input}); err != nil {
		t.Fatal(err)
	}
	codes := map[string][]int{}
	for line := range strings.Lines(out.String()) {
		var got struct {
			ID    json.RawMessage
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || strings.Contains(got.Error.Message, "Go") {
			t.Errorf("got %s, %v", line, err)
		}
		codes[string(got.ID)] = append(codes[string(got.ID)], got.Error.Code)
	}
	want := map[string][]int{"1": {-32600}, "2": {-32602}, "3": {0}, "null": {-32600, -32600}, "4": {-32602},
		"5": {-32601}, "6": {0}}
	answered := maps.Clone(want) // when the second request with the id 3 comes, the first may already be answered
	answered["3"], answered["null"] = []int{0, 0}, []int{-32600}
	if !reflect.DeepEqual(codes, want) && !reflect.DeepEqual(codes, answered) {
		t.Errorf("got the codes %v, want %v or %v: %s", codes, want, answered, &out)
	}
}

// If a running server refuses the program, the program says so, and ends.
func TestARefusalEndsTheProgramOnStdio(t *testing.T) {
	t.Parallel()
	server := tenant(t).remote()
	unknown := "agent-00000000-0000-4000-8000-000000000000"
	for want, c := range map[string]mcpCmd{
		"not found":          {remote: server, Agent: unknown},
		"name the agent":     {remote: server},
		"there is no tool":   {remote: server, Agent: unknown, Tools: "none"},
		"connection refused": {remote: remote{Addr: "127.0.0.1:1"}, Agent: unknown},
	} {
		err := c.Run(t.Context(), streams{out: newLines(), err: newLines(), in: strings.NewReader("")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
