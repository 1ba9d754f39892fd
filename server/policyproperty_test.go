package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
)

// A conversation has several policies in turn, and changes are reverted. In all cases, each result can be read whole,
// and each message is in view or replaced by the summary.
func TestPoliciesThatChangeLoseNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 18)) // #nosec G404 -- a test needs no secure numbers
			c := newClient(t)
			agent := c.made("/v1/agents", `{"name":"Ada","context_window_limit":12000}`)
			base, turns, lines := "/v1/agents/"+agent, 0, map[int]int{}
			presets := policy.Presets()
			for range 10 {
				for n := 1 + r.IntN(3); n > 0; n-- {
					turns++
					lines[turns] = 5 + r.IntN(120)
					c.capture(agent, worked(turns, 1, lines[turns]))
				}
				preset := presets[r.IntN(len(presets))].Name
				c.must("PATCH", base, fmt.Sprintf(`{"compaction_settings":{"policy":%q}}`, preset))
				if got := c.call("GET", base+"/prompt", ""); got.Code != 200 {
					t.Fatalf("the prompt under %s: %d %s", preset, got.Code, got.Text)
				}
				if r.IntN(3) == 0 {
					c.revertAny(r, agent)
				}
			}
			for n := 1; n <= turns; n++ {
				c.readsWhole(agent, result(n, lines[n]))
			}
			c.coversAll(agent)
		})
	}
}

// revertAny reverts one of an agent's compactions, if possible.
func (c *client) revertAny(r *rand.Rand, agent string) {
	c.t.Helper()
	var list []store.Compaction
	raw := c.must("GET", "/v1/agents/"+agent+"/compactions?limit=100", "")
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		c.t.Fatal(err)
	}
	if len(list) == 0 {
		return
	}
	k := list[r.IntN(len(list))]
	got := c.call("POST", "/v1/agents/"+agent+"/compactions/"+k.ID+"/revert", "")
	if got.Code != 200 && got.Code != 409 {
		c.t.Errorf("revert: %d %s", got.Code, got.Text)
	}
}

// readsWhole checks that expand returns all of a stored result, page by page.
func (c *client) readsWhole(agent, text string) {
	c.t.Helper()
	first, _, _ := strings.Cut(text, "\n")
	seq := c.seqOf(agent, first+`\n`)
	got := ""
	for offset := 0; ; {
		var page struct {
			Text string
			Next *int `json:"next_offset"`
		}
		raw := c.must("GET", fmt.Sprintf("/v1/agents/%s/expand/%d?offset=%d", agent, seq, offset), "")
		if err := json.Unmarshal([]byte(raw), &page); err != nil {
			c.t.Fatal(raw, err)
		}
		if got += page.Text; page.Next == nil {
			break
		}
		offset = *page.Next
	}
	if !strings.Contains(got, strings.TrimSpace(text)) {
		c.t.Errorf("seq %d is read as %q, want %q", seq, got, text)
	}
}

// coversAll checks that each message of an agent's default conversation is in view or replaced by the summary.
func (c *client) coversAll(agent string) {
	c.t.Helper()
	conversation, err := c.server.Recall.Conversation(c.t.Context(), c.org, agent, "")
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := c.server.Agents.Compaction.LoadView(c.t.Context(), c.org, conversation, store.PromptOverhead{})
	if err != nil {
		c.t.Fatal(err)
	}
	visible := map[int]bool{}
	for _, m := range v.Messages {
		visible[m.Position] = true
	}
	for _, m := range c.log(agent) {
		hidden := v.Summary != nil && v.Summary.From <= m.Position && m.Position <= v.Summary.To
		if m.Role != "system" && m.Role != "summary" && !visible[m.Position] && !hidden {
			c.t.Errorf("message %d is neither in view nor replaced by the summary %+v", m.Position, v.Summary)
		}
	}
}

// If many requests ask for a prompt at the same time, each part is edited once, and all requests get the same prompt.
func TestManyPruneAtOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"Ada","compaction_settings":{"policy":`+snips+`}}`)
	c.capture(agent, worked(1, 5, 100))
	prompts := make([]string, 6)
	var wait sync.WaitGroup
	for i := range prompts {
		wait.Go(func() { prompts[i] = c.call("GET", "/v1/agents/"+agent+"/prompt", "").Text })
	}
	wait.Wait()
	edits := 0
	for _, k := range c.pruned(agent) {
		for _, step := range k.Steps {
			edits += step.Edits
		}
	}
	if edits != 5 {
		t.Errorf("%d edits of 5 results", edits)
	}
	for i, prompt := range prompts {
		if strings.Contains(prompt, "result 1 line 50 ") || !strings.Contains(prompt, "result 1 line 0 ") {
			t.Errorf("prompt %d: %s", i, prompt)
		}
	}
}
