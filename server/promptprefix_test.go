package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/chunker/frame"
)

// turnsOfPrefix is how many turns the prompts of these tests have.
const turnsOfPrefix = 50

// composed is a prompt as one text, in the order in which a provider reads it, parted at its trailing item.
type composed struct{ before, state string }

// composedOf reads a request in any format. Marks for caching are no part of the text.
func composedOf(t *testing.T, raw json.RawMessage) (c composed) {
	t.Helper()
	var request struct {
		Tools        []map[string]any
		System       []map[string]any
		Instructions string
		Messages     []map[string]any
		Input        []map[string]any
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	all = append(append(all, request.Tools...), request.System...)
	all = append(append(all, map[string]any{"instructions": request.Instructions}), request.Input...)
	for _, m := range request.Messages {
		blocks, ok := m["content"].([]any)
		if !ok {
			all = append(all, m)
			continue
		}
		for _, b := range blocks {
			block := b.(map[string]any)
			block["role of the message"] = m["role"]
			all = append(all, block)
		}
	}
	var b strings.Builder
	for i, item := range all {
		delete(item, "cache_control")
		text, _ := json.Marshal(item) // it was JSON before
		if strings.Contains(string(text), `\u003ccurrent_state\u003e`) {
			if c.state = string(text); i != len(all)-1 {
				t.Errorf("the trailing item is item %d of %d", i+1, len(all))
			}
			break
		}
		b.Write(text)
	}
	c.before = b.String()
	return c
}

// shared returns how much of an earlier prompt begins a later one.
func (c composed) shared(later composed) float64 {
	n := 0
	for n < len(c.before) && n < len(later.before) && c.before[n] == later.before[n] {
		n++
	}
	return float64(n) / float64(len(c.before))
}

// checkPrefix checks a prompt after the one before it: the text before the trailing item stays, and the item has the
// turn's file and its working memory.
func checkPrefix(t *testing.T, turn int, before, now composed) {
	t.Helper()
	for _, part := range []string{"file " + fmt.Sprint(turn%3), "Turn " + fmt.Sprint(turn) + "."} {
		if !strings.Contains(now.state, part) || strings.Contains(now.state, "file "+fmt.Sprint((turn+1)%3)) {
			t.Errorf("turn %d: the trailing item lacks %q: %.900s", turn, part, now.state)
		}
	}
	if share := before.shared(now); turn > 0 && share < 0.99 {
		t.Errorf("turn %d: %.1f %% of the prompt before begin it", turn, 100*share)
	}
}

// fileOfTurn returns the name of the file that a turn opens. Only one stays open.
func fileOfTurn(turn int) string { return fmt.Sprintf("f/%d.txt", turn%3) }

func openingOf(turn int) string {
	return fmt.Sprintf(`{"file_requests":[{"file_name":%q}]}`, fileOfTurn(turn))
}

func notingOf(turn int) string {
	return fmt.Sprintf(`{"changes":[{"field":"next","text":"Turn %d."}]}`, turn)
}

// prefixAgent returns an agent with blocks and three files, of which one may be open.
func (c *client) prefixAgent(model string) string {
	folder := c.made("/v1/folders", `{"name":"f"}`)
	for i := range 3 {
		c.uploaded(folder, fmt.Sprintf("%d.txt", i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 40))
	}
	return c.made("/v1/agents", fmt.Sprintf(`{"name":"a","model":%q,"context_window_limit":200000,"max_files_open":1,
		"folder_ids":[%q],"open_on_attach":false,"tool_set":"all","memory_blocks":[{"label":"human","value":"Ada."}]}`,
		model, folder))
}

func TestAPromptKeepsThePrefixOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for format := range dialects {
		t.Run("prompt, "+format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.prefixAgent("openai/gpt-4o")
			var before composed
			for turn := range turnsOfPrefix {
				c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"Question %d?"},
					{"role":"assistant","content":"Answer %[1]d."},{"role":"user","content":"And?"}]}`, turn))
				c.tool(agent, "open_files", openingOf(turn))
				c.tool(agent, "update_working_memory", notingOf(turn))
				now := c.promptOf(agent, format)
				checkPrefix(t, turn, before, now)
				before = now
			}
		})
		t.Run("step, "+format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.prefixAgent("openai/gpt-4o")
			var before composed
			for turn := range turnsOfPrefix {
				c.step(agent, fmt.Sprintf(`{"format":%q,"messages":[{"role":"user","content":"Question %d?"}]}`, format, turn))
				got := c.step(agent, fmt.Sprintf(`{"format":%q,"response":%s}`, format, callsIn(format, turn)))
				if len(got.Results) != 2 || got.Results[0].Status != "success" || got.Results[1].Status != "success" {
					t.Fatalf("turn %d: %+v", turn, got.Results)
				}
				raw, _ := json.Marshal(got.Prompt.Request) // it was JSON before
				now := composedOf(t, raw)
				checkPrefix(t, turn, before, now)
				before = now
			}
		})
	}
}

// callsIn returns an answer in a format that opens a file and updates the working memory.
func callsIn(format string, turn int) string {
	var calls []string
	for name, arguments := range map[string]string{"open_files": openingOf(turn),
		"update_working_memory": notingOf(turn)} {
		id, text := fmt.Sprintf("%s_%d", name, turn), fmt.Sprintf("%q", arguments)
		calls = append(calls, map[string]string{
			"openai":    fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, name, text),
			"anthropic": fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, arguments),
			"responses": fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, id, name, text)}[format])
	}
	return fmt.Sprintf(map[string]string{
		"openai":    `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[%s]}}]}`,
		"anthropic": `{"type":"message","role":"assistant","content":[%s],"stop_reason":"tool_use"}`,
		"responses": `{"object":"response","status":"completed","output":[%s]}`}[format], strings.Join(calls, ","))
}

// promptOf returns the request of the next prompt in a format.
func (c *client) promptOf(agent, format string) composed {
	c.t.Helper()
	var p struct{ Request json.RawMessage }
	if err := json.Unmarshal([]byte(c.promptIn(agent, format)), &p); err != nil {
		c.t.Fatal(err)
	}
	return composedOf(c.t, p.Request)
}

func TestTheLoopKeepsThePrefixOfThePromptBefore(t *testing.T) {
	t.Parallel()
	for format, handle := range map[string]string{"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newServerClient(t)
			c.work()
			m := modeltest.New(t)
			c.own().Loop = newLoop(t, c.server, m.URL)
			c.own().Children.Loop = c.server.Loop
			r := runner{c, m, c.prefixAgent(handle)}
			var before composed
			for turn := range turnsOfPrefix {
				m.Says(modeltest.Answer{Calls: []modeltest.Call{{ID: fmt.Sprintf("o%d", turn), Name: "open_files",
					Arguments: openingOf(turn)}, {ID: fmt.Sprintf("w%d", turn), Name: "update_working_memory",
					Arguments: notingOf(turn)}}, PromptTokens: -1}, modeltest.Answer{Text: "Done.", PromptTokens: -1})
				r.send(fmt.Sprintf(`{"messages":[{"role":"user","content":"Question %d?"}]}`, turn))
				asked := m.Requests()
				now := composedOf(t, asked[len(asked)-1].Body)
				checkPrefix(t, turn, before, now)
				before = now
			}
		})
	}
}

func TestTheMCPPromptKeepsThePrefixOfTheOneBefore(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.prefixAgent("openai/gpt-4o")
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent})
	var before composed
	for turn := range turnsOfPrefix {
		c.capture(agent, fmt.Sprintf(`{"messages":[{"role":"user","content":"Question %d?"},
			{"role":"assistant","content":"Answer %[1]d."}]}`, turn))
		c.tool(agent, "open_files", openingOf(turn))
		c.tool(agent, "update_working_memory", notingOf(turn))
		got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "context",
			Arguments: map[string]string{"budget": "100000"}})
		if err != nil {
			t.Fatal(err)
		}
		text := got.Messages[0].Content.(*sdk.TextContent).Text
		begin, state, _ := strings.Cut(text, "# Working memory")
		now := composed{begin, state}
		if share := before.shared(now); turn > 0 && share < 0.99 {
			t.Errorf("turn %d: %.1f %% of the prompt before begin it", turn, 100*share)
		}
		if !strings.Contains(state, fmt.Sprintf("Turn %d.", turn)) {
			t.Errorf("turn %d: the end lacks the working memory: %.300s", turn, text)
		}
		before = now
	}
}

// A change of a block changes a prompt where the block stands, and nowhere before.
func TestABlockChangesAPromptWhereItStands(t *testing.T) {
	t.Parallel()
	for format := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent := c.prefixAgent("openai/gpt-4o")
			c.capture(agent, `{"messages":[{"role":"user","content":"Hello?"}]}`)
			before := c.promptOf(agent, format)
			c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"value":"Ada Lovelace."}`)
			after := c.promptOf(agent, format)
			n := int(before.shared(after)*float64(len(before.before)) + 0.5)
			if at := strings.Index(before.before, "chars_current"); n < at || n > strings.Index(before.before, "Ada.") {
				t.Errorf("the first change is at byte %d; the block begins at %d: %q", n, at, before.before[at:n])
			}
		})
	}
}

// A client that sends the messages of a request back has their state dropped. A state alone is refused.
func TestTheStateOfAPromptIsNotCaptured(t *testing.T) {
	t.Parallel()
	for format := range dialects {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := newClient(t)
			agent, other := c.made("/v1/agents", `{}`), c.made("/v1/agents", `{}`)
			c.capture(agent, `{"messages":[{"role":"user","content":"Hello?"}]}`)
			var p struct{ Request map[string]json.RawMessage }
			if err := json.Unmarshal([]byte(c.promptIn(agent, format)), &p); err != nil {
				t.Fatal(err)
			}
			var sent []json.RawMessage
			list := map[string]string{"responses": "input"}[format]
			if list == "" {
				list = "messages"
			}
			if err := json.Unmarshal(p.Request[list], &sent); err != nil {
				t.Fatal(err)
			}
			if format == "openai" {
				sent = sent[1:] // without the system prompt
			}
			body, _ := json.Marshal(map[string]any{list: sent}) // it was JSON before
			c.capture(other, string(body))
			said := c.said(other)
			if len(said) != 1 || !strings.Contains(said[0], "Hello?") || strings.Contains(said[0], "current_state") {
				t.Errorf("the log has %q", said)
			}
			alone := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, frame.StateOf("- 1"))
			got := c.call("POST", "/v1/agents/"+other+"/messages/capture", alone)
			if got.Code != 422 || !strings.Contains(got.Text, "no message") || len(c.said(other)) != 1 {
				t.Errorf("the state alone: got %d %s", got.Code, got.Text)
			}
		})
	}
}
