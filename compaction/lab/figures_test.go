package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

const (
	figuresBegin = "<!-- begin: written by a test from replays of 32 turns in a window of 200,000 tokens -->\n"
	figuresEnd   = "<!-- end of the figures -->\n"

	figuresWindow = 200_000
	figuresTurns  = 32
)

// longSession returns a session of 32 turns with about 287,000 tokens. In each turn the agent reads two long files and
// runs five commands; its answers name values that only files of earlier turns have.
func longSession() transcript.Transcript {
	t := transcript.Transcript{Name: "32 turns", System: "You repair the programs of a harbour."}
	add := func(role recall.Role, p ...recall.Part) {
		t.Drafts = append(t.Drafts, recall.Draft{Role: role, Content: p})
	}
	say := func(role recall.Role, text string) { add(role, recall.Part{Type: recall.Text, Text: text}) }
	call := func(name, input, result string) {
		id := fmt.Sprintf("call-%d", len(t.Drafts))
		add(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: name, Input: input})
		add(recall.Tool, recall.Part{Type: recall.ToolReturn, CallID: id, Text: result})
	}
	for turn := range figuresTurns {
		say(recall.User, fmt.Sprintf("Mend berth %d; keep max_draught_%03d as it is.", turn, turn))
		for n := range 2 {
			file := fmt.Sprintf("src/berth_%03d_%d.go", turn, n)
			half := strings.Repeat(fmt.Sprintf("// The ship of quay %d waits for the tide before the master gives it a berth.\n",
				n), []int{58, 116}[n])
			call("read_file", `{"path":"`+file+`"}`, fmt.Sprintf("%sconst limit_%03d_%d = %d\n%s", half, turn, n, 7000+10*turn+n,
				half))
		}
		for n := range 5 {
			call("bash", fmt.Sprintf(`{"command":"go test ./berth_%03d -run %d"}`, turn, n),
				strings.Repeat(fmt.Sprintf("ok  \tharbour/berth_%03d/part_%d\t0.0%ds\n", turn, n, n), 7))
		}
		before := max(turn-[]int{0, 1, 5, 12}[turn%4], 0)
		say(recall.Assistant, fmt.Sprintf("Berth %d is mended; it uses limit_%03d_1 of src/berth_%03d_1.go, %d.", turn,
			before, before, 7001+10*before))
	}
	return t
}

// figure is a number of a preset's source, and how it is measured.
type figure struct {
	preset, says string
	measure      func(lab.Result) string
}

// compacted says from and to how many tokens the first compaction went.
func compacted(r lab.Result) string {
	for _, t := range r.Turns {
		if t.Compacted {
			return fmt.Sprintf("the first prompt that was compacted had %d tokens, and %d after it", t.Before, t.Tokens)
		}
	}
	return fmt.Sprintf("never compacted: no prompt had more than %d tokens", r.Most)
}

// did says what a step did in the replay.
func did(step string) func(lab.Result) string {
	return func(r lab.Result) string {
		for _, l := range r.Layers {
			if l.Step == step && l.Saved < 0 {
				return fmt.Sprintf("`%s` acted %s and showed %d tokens again", step, times(l.Fired), -l.Saved)
			}
			if l.Step == step && l.Fired > 0 {
				return fmt.Sprintf("`%s` acted %s and took %d tokens out of view", step, times(l.Fired), l.Saved)
			}
			if l.Step == step {
				return fmt.Sprintf("`%s` did not fire", step)
			}
		}
		return "the preset has no such step"
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// pruned says at how many tokens the first prompt was edited.
func pruned(r lab.Result) string {
	for _, t := range r.Turns {
		if !t.Compacted && t.Tokens < t.Before {
			return fmt.Sprintf("the first prompt that was shortened had %d tokens, and %d after it", t.Before, t.Tokens)
		}
	}
	return "never shortened"
}

// growth says how the prompts grow after the sixth turn of the user, in tokens per turn.
func growth(r lab.Result) string {
	calls := len(r.Turns) / figuresTurns
	least, most := r.Turns[5*calls].Tokens, 0
	for _, t := range r.Turns[5*calls:] {
		least, most = min(least, t.Tokens), max(most, t.Tokens)
	}
	return fmt.Sprintf("from the sixth turn on, prompts have %d to %d tokens", least, most)
}

// figures are what the sources of the presets say about themselves. Their windows have 200,000 tokens.
var figures = []figure{
	{"alyx", "A checkpoint is forced above 50,000 tokens, at four characters each.", compacted},
	{"alyx", "Rows up to 10,000 tokens of a result are shown.", did("largest_slice")},
	{"anthropic", "From 100,000 tokens on, all results but three are cleared.", pruned},
	{"anthropic", "From 150,000 tokens on, all messages are compacted.", compacted},
	{"claude-code", "Compacts at about 167,000 tokens: 20,000 for a summary and 13,000 stay free.", compacted},
	{"claude-code", "Up to 5 files of up to 5,000 tokens are shown again, 50,000 in all.", did("restore_files")},
	{"deck", "Summarizes the oldest 70 % of the turns at 30 % of the window, 60,000 tokens.", compacted},
	{"deck", "A result takes at most 1,500 tokens.", did("token_clip")},
	{"deck", "Prompts of a healthy session hardly grow after the fifth turn.", growth},
	{"four-layers", "287K → 198K → 142K → 89K tokens, layer by layer (one session).", lab.Result.ChainText},
	{"four-layers", "Quality 95 % after snip, 85 % after microcompact, 70 % after auto-compact (claimed).",
		func(r lab.Result) string { return "in view, in the row above" }},
	{"fourlayer-literal", "The same.", lab.Result.ChainText},
	{"letta", "Above 90 % of the window, 180,000 tokens, the oldest 30 % leave, and more until 70 % are in use.",
		compacted},
	{"memory-v2", "Results leave 30 seconds after they came; they were 82.5 % of the characters.", did("age_ttl")},
	{"openclaw", "A reserve of 20,000 tokens stays free: compacts above 180,000.", compacted},
	{"openclaw", "A result takes at most 16,000 characters.", did("important_tail")},
	{"pi", "Compacts above 183,616 tokens: 16,384 stay free.", compacted},
	{"pi", "The newest 20,000 tokens stay, with a summary.", func(r lab.Result) string {
		return compacted(r) + "; " + did("keep_recent")(r)
	}},
}

// figuresTable returns the table of the figures, and what was measured.
func figuresTable(t testing.TB) string {
	t.Helper()
	session := lab.NewSession(longSession())
	results := map[string]lab.Result{}
	for _, p := range policy.Presets() {
		r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: p.Name, Policy: p.Policy(), Window: figuresWindow,
			Prices: policy.UsualPrices})
		if err != nil || r.PairErrors+r.TooLarge > 0 {
			t.Errorf("%s: %d pair errors, %d too large, %v", p.Name, r.PairErrors, r.TooLarge, err)
		}
		results[p.Name] = r
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe session has %d messages, and a prompt with all of them %d tokens.\n\n"+
		"| policy | its source says | measured |\n| --- | --- | --- |\n", session.Messages(), session.Tokens())
	named := map[string]bool{}
	for _, f := range figures {
		named[f.preset] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.preset, f.says, f.measure(results[f.preset]))
	}
	for name := range results {
		if !named[name] {
			t.Errorf("the figures of %s are missing", name)
		}
	}
	return b.String() + "\n"
}

// docs/policies.md has the figures of each preset's source beside what the lab measures.
func TestThePageHasTheFiguresOfTheSources(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	pageHas(t, figuresBegin, figuresEnd, figuresTable(t))
}
