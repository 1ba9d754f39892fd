package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// Under OpenClaw's policy a prompt shows 12,000 characters of a long block, three quarters of them of its beginning,
// and 60,000 of all blocks. Without it, it shows all.
func TestBlocksAreBoundedAtTheStartOfASession(t *testing.T) {
	t.Parallel()
	text := func(name string, chars int) string {
		var b strings.Builder
		for i := 0; b.Len() < chars; i++ {
			fmt.Fprintf(&b, "%s line %d\n", name, i)
		}
		return b.String()[:chars]
	}
	long := text("soul", 25_000)
	blocks := []block.New{{Label: "a_soul", Value: long, Limit: 30_000}}
	for i := range 6 {
		blocks = append(blocks, block.New{Label: fmt.Sprint("b", i), Value: text(fmt.Sprint("b", i), 11_000),
			Limit: 30_000})
	}
	s, _ := newStore(t)
	shown := func(settings string) string {
		t.Helper()
		a := create(t, s, agent.New{Name: "a", WindowLimit: new(200_000), Blocks: blocks,
			Settings: agent.Settings{CompactionSettings: json.RawMessage(settings)}})
		say(t, s, a, said(recall.User, "Hello."))
		var request struct {
			Messages []struct{ Content string }
		}
		if err := json.Unmarshal(handOut(t, s, a, agent.OpenAI).Request, &request); err != nil {
			t.Fatal(err)
		}
		return request.Messages[0].Content
	}
	bounded := shown(`{"policy":"openclaw"}`)
	for what, part := range map[string]string{"beginning": long[:8_900], "end": long[len(long)-2_900:],
		"note": " of 25000 characters left out"} {
		if !strings.Contains(bounded, part) {
			t.Errorf("the prompt has no %s of the block", what)
		}
	}
	if strings.Contains(bounded, long[:12_001]) || strings.Contains(bounded, long[10_000:11_000]) {
		t.Error("the middle of the block is shown")
	}
	if n := strings.Count(bounded, " line "); n < 60_000/20 || len(bounded) > 70_000 {
		t.Errorf("the prompt has %d bytes with %d lines of blocks", len(bounded), n)
	}
	if whole := shown(`{"policy":"pi"}`); !strings.Contains(whole, long) || strings.Contains(whole, "left out") {
		t.Error("another policy bounds blocks")
	}
	less := shown(`{"policy":{"preset":"pi","steps":{"bootstrap":{"max_chars":1000}}}}`)
	if !strings.Contains(less, long[:750]) || strings.Contains(less, long[:760]) {
		t.Error("the step does not act in another policy")
	}
}
