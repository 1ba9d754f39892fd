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

// What the views of the model show of long results.
var (
	readOn     = regexp.MustCompile(`expand\(id="?([^",)]+)"?(?:, offset=(\d+))?(?:, limit=(\d+))?\)`)
	pageHeader = regexp.MustCompile(`^(\S+), bytes (\d+)-(\d+) of \d+\n=+\n`)
)

// An agent with a small window that does what the notices of clipped results say reads all of a long result, each byte
// once, in few calls, or is told that its window has no room for any of it. No notice leads to a part that was shown.
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
		read, steps, told := "", 0, false
		asked := map[string]bool{}
		for ; steps < 200; steps++ {
			shown := c.lastResult(agent)
			page := pageHeader.FindStringSubmatch(shown)
			switch {
			case page != nil:
				from, _ := strconv.Atoi(page[2])
				to, _ := strconv.Atoi(page[3])
				body := shown[len(page[0]):]
				if from != len(read) || to-from > len(body) {
					t.Fatalf("window %d, step %d: bytes %d-%d are shown after %d: %.200s", window, steps, from, to, len(read), shown)
				}
				read += body[:to-from]
			case steps == 0:
				read, _, _ = strings.Cut(shown, "\n[")
			}
			told = strings.Contains(shown, "has no room for any of this text")
			call := readOn.FindAllStringSubmatch(shown, -1)
			if len(call) == 0 {
				break
			}
			next := call[len(call)-1]
			args := fmt.Sprintf(`{"id":%q,"offset":%s,"limit":%s}`, next[1], cmp.Or(next[2], "0"), cmp.Or(next[3], "16000"))
			if steps == 0 && next[2] != "" { // the line's end before the notice is one of the text, or not
				read = shown[:min(len(read)+1, len(shown))]
				if !strings.HasPrefix(whole, read) || fmt.Sprint(len(read)) != next[2] {
					read = read[:len(read)-1]
				}
			}
			if asked[args] {
				t.Fatalf("window %d, step %d: the same part is to be read again, %s: %.200s", window, steps, args, shown)
			}
			asked[args] = true
			c.exchanged(agent, "expand", args, c.tool(agent, "expand", args))
		}
		if read != whole && (!told || window >= 4096) {
			t.Errorf("window %d: after %d steps, %d of %d bytes are read", window, steps, len(read), len(whole))
		}
	}
}

// exchanged captures a call of a tool and its result.
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

// lastResult returns the newest result of a tool as the agent's model sees it.
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
