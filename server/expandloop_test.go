package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// These match notices and headers in the model's view of long results.
var (
	readOn     = regexp.MustCompile(`expand\(id="?([^",)]+)"?(?:, offset=(\d+))?(?:, limit=(\d+))?\)`)
	pageHeader = regexp.MustCompile(`^(\S+), bytes (\d+)-(\d+) of \d+\n=+\n`)
)

// An agent with a small window follows the notices of clipped results. It reads all of a long result, each byte once
// and in few calls, or is told that its window has no room for it. No notice leads to a part that was already shown.
func TestAgentsThatFollowNoticesReadAll(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, window := range []int{3000, 3500, 4096, 8192}[:scale.Of(2, 4)] {
		c := newClient(t)
		agent := c.made("/v1/agents", fmt.Sprintf(`{"tool_set":"small","context_window_limit":%d}`, window))
		var b strings.Builder
		for i := 0; b.Len() < min(40_000, 2_000+10*max(0, window-3_500)); i++ {
			fmt.Fprintf(&b, "%d: größe %d\n", i, i*77)
		}
		whole := b.String()
		c.capture(agent, `{"messages":[{"role":"user","content":"`+strings.Repeat("word ", window/4)+`"}]}`)
		c.exchanged(agent, "run", "{}", whole)
		collected, steps, noRoom := "", 0, false
		asked := map[string]bool{}
		for ; steps < 200; steps++ {
			shown := c.lastResult(agent)
			page := pageHeader.FindStringSubmatch(shown)
			switch {
			case page != nil:
				start, _ := strconv.Atoi(page[2])
				end, _ := strconv.Atoi(page[3])
				body := shown[len(page[0]):]
				if start != len(collected) || end-start > len(body) {
					t.Fatalf("window %d, step %d: bytes %d-%d are shown after %d: %.200s", window, steps, start, end, len(collected),
						shown)
				}
				collected += body[:end-start]
			case steps == 0:
				collected, _, _ = strings.Cut(shown, "\n[")
			}
			noRoom = strings.Contains(shown, "has no room for any of this text")
			call := readOn.FindAllStringSubmatch(shown, -1)
			if len(call) == 0 {
				break
			}
			next := call[len(call)-1]
			args := fmt.Sprintf(`{"id":%q,"offset":%s,"limit":%s}`, next[1], cmp.Or(next[2], "0"), cmp.Or(next[3], "16000"))
			if steps == 0 && next[2] != "" { // the line break before the notice may belong to the text
				collected = shown[:min(len(collected)+1, len(shown))]
				if !strings.HasPrefix(whole, collected) || fmt.Sprint(len(collected)) != next[2] {
					collected = collected[:len(collected)-1]
				}
			}
			if asked[args] {
				t.Fatalf("window %d, step %d: the same part is to be read again, %s: %.200s", window, steps, args, shown)
			}
			asked[args] = true
			c.exchanged(agent, "expand", args, c.tool(agent, "expand", args))
		}
		if collected != whole && (!noRoom || window >= 4096) {
			t.Errorf("window %d: after %d steps, %d of %d bytes are read", window, steps, len(collected), len(whole))
		}
	}
}

// exchanged captures a tool call and its result.
func (c *client) exchanged(agent, tool, args, result string) {
	c.t.Helper()
	id := uuid.NewString()
	raw, err := json.Marshal(map[string]any{"messages": []any{
		map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": tool, "arguments": args}}}},
		map[string]any{"role": "tool", "tool_call_id": id, "content": result}}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.capture(agent, string(raw))
}

// lastResult returns the newest tool result as the agent's model sees it.
func (c *client) lastResult(agent string) (text string) {
	c.t.Helper()
	var prompt struct {
		Request struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
	}
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/prompt", "")), &prompt); err != nil {
		c.t.Fatal(err)
	}
	for _, m := range prompt.Request.Messages {
		if m.Role == "tool" {
			text = m.Content.(string)
		}
	}
	return text
}
