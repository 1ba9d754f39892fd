package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// Numbers for pruning after the cache has expired. They follow from the rules, except that our notes have other
// lengths.
func TestCacheTTLGoldenNumbers(t *testing.T) {
	t.Parallel()
	literal := `{"steps":[{"step":"cache_ttl","hard_share":0,"min_clear_chars":100}]}`
	usual := `{"steps":[{"step":"cache_ttl"}]}`
	for _, c := range []struct {
		name          string
		window        int
		results, each int
		policy        string
		ago           time.Duration
		soft, cleared int
		chars         int // characters shown in the end; the rules have notes of 82 and 33 characters
	}{
		{"30 results are all shortened", 200_000, 30, 10_000, usual, 5 * time.Minute, 27, 0, 116_449},
		{"a hard share of 0 clears most, not least", 200_000, 30, 10_000, literal, 5 * time.Minute, 0, 27, 33_991},
		{"20 results fill too little", 200_000, 20, 10_000, usual, 5 * time.Minute, 0, 0, 202_100},
		{"60 results in a small window", 32_000, 60, 10_000, usual, 5 * time.Minute, 8, 49, 62_413},
		{"2 results are too few", 200_000, 2, 200_000, usual, 5 * time.Minute, 0, 0, 400_300},
		{"4m59s is too early", 200_000, 30, 10_000, usual, 5*time.Minute - time.Second, 0, 0, 303_100},
		{"hard_clear off never clears", 32_000, 60, 10_000, `{"steps":[{"step":"cache_ttl","hard_clear":false}]}`,
			5 * time.Minute, 57, 0, 212_059},
		{"a small result is not cleared", 32_000, 60, 10_000,
			`{"steps":[{"step":"cache_ttl","min_result_chars":10001}]}`, 5 * time.Minute, 57, 0, 212_059},
	} {
		v := window(c.window).user(100).repeat(c.results, "read", c.each)
		after, edits := v.prune(c.policy, touched(c.ago))
		n := kinds(edits)
		if n[clip.Clip] != c.soft || n[clip.Stub] != c.cleared {
			t.Errorf("%s: %v, want %d shortened and %d cleared", c.name, n, c.soft, c.cleared)
		}
		if got := shownChars(after); got < c.chars-c.chars/50 || got > c.chars+c.chars/50 {
			t.Errorf("%s: %d characters, want about %d", c.name, got, c.chars)
		}
		v.Edits = after.Edits
		if _, again := v.prune(c.policy, touched(time.Second)); len(again) > 0 {
			t.Errorf("%s: a second later it prunes again: %v", c.name, again)
		}
	}
	none := window(32_000).repeat(60, "read", 10_000).user(100)
	if _, edits := none.prune(usual, touched(time.Hour)); len(edits) > 0 {
		t.Error("what was read before the user spoke is pruned")
	}
	none = window(32_000).user(100).repeat(60, "read", 10_000)
	if _, edits := none.prune(usual, policy.Moment{Now: epoch}); len(edits) > 0 {
		t.Error("a conversation without a prompt is pruned")
	}
	_, edits := window(32_000).user(100).repeat(60, "Read", 10_000).
		prune(`{"steps":[{"step":"cache_ttl","tools":["*"],"except":["re*"]}]}`, touched(time.Hour))
	if len(edits) > 0 {
		t.Error("an excepted tool's results are pruned")
	}
}

// A time without a unit is refused (D1), because some harnesses mean minutes and others seconds.
func TestDurationsHaveUnits(t *testing.T) {
	t.Parallel()
	for _, ttl := range []string{`30`, `"30"`, `"5"`, `"-5m"`} {
		_, err := policy.Parse([]byte(`{"steps":[{"step":"cache_ttl","ttl":` + ttl + `}]}`))
		if err == nil || !strings.Contains(err.Error(), "with its unit") {
			t.Errorf("%s: %v", ttl, err)
		}
	}
}

// Clearing tool uses gives the numbers of its source.
func TestClearToolUsesGoldenNumbers(t *testing.T) {
	t.Parallel()
	ten := func() *viewBuilder {
		v := window(200_000).user(10)
		for i := range 10 {
			v.call("read", 2, fmt.Sprint(i)+strings.Repeat(" the", 12_000))
		}
		return v
	}
	used := clip.Estimate(ten().View)
	step := func(settings string) string { return `{"steps":[{"step":"clear_tool_uses"` + settings + `}]}` }
	for _, c := range []struct {
		name, settings string
		cleared        int
	}{
		{"10 of 12,000 tokens, keep 3", ``, 7},
		{"84,000 clearable of at least 90,000", `,"clear_at_least_tokens":90000`, 0},
		{"84,000 clearable of at least 80,000", `,"clear_at_least_tokens":80000`, 7},
		{"an excluded tool", `,"exclude_tools":["READ"]`, 0},
		{"as many tokens as the trigger", fmt.Sprintf(`,"trigger_tokens":%d`, used), 0},
		{"a token more than the trigger", fmt.Sprintf(`,"trigger_tokens":%d`, used-1), 7},
		{"more uses than the trigger", `,"trigger_tokens":0,"trigger_uses":9`, 7},
		{"as many uses as the trigger", `,"trigger_tokens":0,"trigger_uses":10`, 0},
	} {
		after, edits := ten().prune(step(c.settings), policy.Moment{})
		if n := kinds(edits)[clip.Stub]; n != c.cleared || len(edits) != n {
			t.Errorf("%s: %v", c.name, edits)
		}
		if c.cleared > 0 && after.AsShown()[2].Content[0].Text != "[old result cleared: expand(id=3)]" {
			t.Errorf("%s: %s", c.name, after.AsShown()[2].Content[0].Text)
		}
	}
	v := window(200_000).user(10)
	for i := range 10 {
		v.calling("write", `{"path":"a","content":"`+sea(2000)+`"}`, fmt.Sprint(i)+strings.Repeat(" the", 12_000))
	}
	after, edits := v.prune(step(`,"clear_tool_inputs_of":["write"]`), policy.Moment{})
	if n := kinds(edits)[clip.Stub]; n != 14 || after.AsShown()[1].Content[0].Input != `{"cleared":"expand(id=2)"}` {
		t.Errorf("with inputs: %d, %s", n, after.AsShown()[1].Content[0].Input)
	}
}

// Thoughts are removed whole, from the oldest turns first, and never before their calls are answered.
func TestClearThinking(t *testing.T) {
	t.Parallel()
	v := window(200_000)
	for range 5 {
		v.user(10).put(recall.Assistant, thought(sea(100)), text("Well."))
	}
	two := `{"steps":[{"step":"clear_thinking","keep_turns":2}]}`
	after, edits := v.prune(two, policy.Moment{})
	if n := kinds(edits)[clip.Removed]; n != 3 || len(edits) != 3 {
		t.Errorf("of 5 turns with 2 kept: %v", edits)
	}
	for i, m := range after.AsShown() {
		if whole := v.Messages[i]; i >= 6 && fmt.Sprint(m) != fmt.Sprint(whole) {
			t.Errorf("a thought that stays is changed: %v", m)
		}
	}
	loop := window(200_000).user(10)
	for range 4 {
		loop.calls++
		id := fmt.Sprint("call_", loop.calls)
		loop.put(recall.Assistant, thought(sea(100)), called(id, "read", "{}")).put(recall.Tool, result(id, "text"))
	}
	if _, edits := loop.prune(`{"steps":[{"step":"clear_thinking"}]}`, policy.Moment{}); len(edits) > 0 {
		t.Errorf("thoughts of calls that are not answered leave: %v", edits)
	}
}

// Microcompact's numbers: a pause of an hour, five results kept, twelve at most. While the cache is warm, a window that
// has room is left alone.
func TestMicrocompactGoldenNumbers(t *testing.T) {
	t.Parallel()
	idle := func(v *viewBuilder, ago time.Duration) policy.Moment {
		return policy.Moment{Now: v.Messages[len(v.Messages)-2].CreatedAt.Add(ago)}
	}
	step, counting := `{"steps":[{"step":"microcompact","trigger_count":0}]}`, `{"steps":[{"step":"microcompact"}]}`
	for _, c := range []struct {
		name, tool, policy string
		results            int
		used               float64 // share of the window
		ago                time.Duration
		cleared            int
	}{
		{"20 results, 61 minutes", "Read", step, 20, 0.01, 61 * time.Minute, 15},
		{"20 results, 59 minutes", "Read", step, 20, 0.01, 59 * time.Minute, 0},
		{"a tool that is not compacted", "send_mail", step, 20, 0.01, 61 * time.Minute, 0},
		{"13 results, warm, 1 % used", "Bash", counting, 13, 0.01, time.Minute, 0},
		{"13 results, warm, 80 % used", "Bash", counting, 13, 0.8, time.Minute, 8},
		{"12 results, warm, 80 % used", "Bash", counting, 12, 0.8, time.Minute, 0},
		{"Claude Code: 13 results, warm, 80 % used", "Bash", "claude-code", 13, 0.8, time.Minute, 0},
		{"Claude Code: 13 results, cold", "Bash", "claude-code", 13, 0.01, 61 * time.Minute, 8},
	} {
		v := window(0).user(10).repeat(c.results, c.tool, 1000)
		v.Window = int(float64(clip.Estimate(v.View)) / c.used)
		if _, edits := v.prune(c.policy, idle(v, c.ago)); len(edits) != c.cleared {
			t.Errorf("%s: %d cleared, want %d", c.name, len(edits), c.cleared)
		}
	}
}

// A step by_provider becomes an edit of a request in Anthropic's form, and clears nothing in such a prompt. In other
// forms it clears.
func TestTheProviderClearsInAnthropicsForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, policy, want string }{
		{"as in Claude Code", `{"preset":"claude-code","steps":{"microcompact":{"by_provider":true,"trigger_share":0}}}`,
			`{"edits":[{"exclude_tools":["memory"],"keep":{"type":"tool_uses","value":5},` +
				`"trigger":{"type":"tool_uses","value":12},"type":"clear_tool_uses_20250919"}]}`},
		{"Claude Code's own share", `{"preset":"claude-code","steps":{"microcompact":{"by_provider":true}}}`,
			`{"edits":[{"exclude_tools":["memory"],"keep":{"type":"tool_uses","value":5},` +
				`"trigger":{"type":"input_tokens","value":150000},"type":"clear_tool_uses_20250919"}]}`},
		{"by tokens", `{"steps":[{"step":"clear_tool_uses","by_provider":true,"clear_at_least_tokens":7,"trigger_tokens":1,` +
			`"clear_tool_inputs_of":["re*"]}]}`,
			`{"edits":[{"clear_at_least":{"type":"input_tokens","value":7},"clear_tool_inputs":["Read"],` +
				`"exclude_tools":["memory"],"keep":{"type":"tool_uses","value":3},` +
				`"trigger":{"type":"input_tokens","value":1},"type":"clear_tool_uses_20250919"}]}`},
		{"here", `{"steps":[{"step":"clear_tool_uses","trigger_tokens":1}]}`, `null`},
	} {
		p, err := policy.Parse([]byte(c.policy))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		management := p.ContextManagement([]string{"Read", "memory"}, 200_000)
		if got, err := json.Marshal(management); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", c.name, got, err, c.want)
		}
		v := window(20_000).user(10).repeat(13, "Read", 1000)
		if _, edits := p.Prune(v.View, policy.Moment{Anthropic: true}); len(edits) > 0 != (c.want == "null") {
			t.Errorf("%s: in Anthropic's form %d results are cleared here", c.name, len(edits))
		}
		if _, edits := p.Prune(v.View, policy.Moment{}); len(edits) == 0 && !strings.Contains(c.name, "own share") {
			t.Errorf("%s: in another form nothing is cleared", c.name)
		}
	}
}

// Results older than 30 seconds are cleared when a turn begins.
func TestAgeTTLGoldenNumbers(t *testing.T) {
	t.Parallel()
	second := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	viewWith := func(chars ...int) *viewBuilder {
		v := window(200_000).user(10)
		for i, n := range chars {
			v.call("bash", 5, sea(n))
			v.Messages[len(v.Messages)-1].CreatedAt = second([]int{0, 10, 40}[i])
		}
		return v
	}
	aged := `{"steps":[{"step":"age_ttl","protect_turns":0}]}`
	moment := policy.Moment{Now: second(45)}
	after, edits := viewWith(1000, 1000, 1000).user(10).prune(aged, moment)
	if len(edits) != 2 || after.AsShown()[2].Content[0].Text != "[result of bash cleared: expand(id=3)]" {
		t.Errorf("of results of 0, 10, and 40 s at 45 s: %v", edits)
	}
	if _, edits := viewWith(1000, 99, 1000).user(10).prune(aged, moment); len(edits) != 1 {
		t.Errorf("a result of 99 characters: %v", edits)
	}
	if _, edits := viewWith(1000, 1000, 1000).user(10).prune("memory-v2", moment); len(edits) != 2 {
		t.Errorf("under memory-v2: %v", edits)
	}
	always := `{"preset":"memory-v2","steps":{"age_ttl":{"when":"always"}}}`
	if _, edits := viewWith(1000, 1000, 1000).prune(always, moment); len(edits) > 0 {
		t.Errorf("the turn under way: %v", edits)
	}
	if _, edits := viewWith(1000, 1000, 1000).says(10).prune(aged, moment); len(edits) > 0 {
		t.Errorf("in the middle of a turn: %v", edits)
	}
}

// Long texts in old calls are cut; the arguments keep their fields.
func TestOldArguments(t *testing.T) {
	t.Parallel()
	input := `{"path":"a.go","content":"` + sea(5000) + `","mode":7}`
	v := window(200_000).user(10).calling("write_file", input, "ok").calling("read_file", input, "ok")
	for len(v.Messages) < 28 {
		v.user(5).says(5)
	}
	v.calling("write_file", input, "ok").says(5)
	after, edits := v.prune(`{"steps":[{"step":"old_arguments"}]}`, policy.Moment{})
	var arguments map[string]any
	if err := json.Unmarshal([]byte(after.AsShown()[1].Content[0].Input), &arguments); err != nil || len(edits) != 1 ||
		arguments["path"] != "a.go" || arguments["mode"] != 7.0 ||
		!strings.HasPrefix(arguments["content"].(string), sea(20)+"\n[4980 of 5000 ") {
		t.Errorf("%v, %v: %s", err, edits, after.AsShown()[1].Content[0].Input)
	}
}
