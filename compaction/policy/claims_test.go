package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// said returns the shown text of a message's first part, by the message's position in a viewBuilder's view.
func said(v clip.View, position int) string {
	p := v.AsShown()[position-1].Content[0]
	return p.Text + p.Input
}

// within reports whether got differs from want by at most a share.
func within(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// Claims of harnesses about how they bound a single result.
func TestClaimsAboutBounds(t *testing.T) {
	t.Parallel()
	for claim, holds := range map[string]func() (any, bool){
		"a 60 KB result is a preview of 2 KB on the first turn, however empty the window": func() (any, bool) {
			after, _ := window(1_000_000).user(10).repeat(1, "grep", 60<<10).prune("claude-code", policy.Moment{})
			n := len(said(after, 3))
			return n, n > 1900 && n < 2300
		},
		"previews leave the texts of the conversation as they are": func() (any, bool) {
			_, edits := window(1_000_000).user(300_000).says(300_000).user(10).prune("claude-code", policy.Moment{})
			return edits, len(edits) == 0
		},
		"a result is at most 30 % of a small window, and 16,000 characters of a large one": func() (any, bool) {
			small, _ := window(8000).user(10).repeat(1, "bash", 40_000).prune("openclaw", policy.Moment{})
			large, _ := window(200_000).user(10).repeat(1, "bash", 40_000).prune("openclaw", policy.Moment{})
			a, b := len(said(small, 3)), len(said(large, 3))
			return []int{a, b}, a <= 9600 && a > 9000 && b <= 16_000 && b > 15_000
		},
		"a result up to 10,000 characters is unchanged, a longer one keeps 30 % of that at each end": func() (any, bool) {
			v := window(200_000).user(10).call("read", 5, sea(10_000)).call("read", 5, "imports\n"+sea(30_000)+"\nexports")
			after, _ := v.prune("fourlayer-literal", policy.Moment{})
			whole, cut := said(after, 3), said(after, 5)
			n := len(cut)
			return cut, len(whole) == 10_000 && n > 6000 && n < 6200 && strings.HasPrefix(cut, "imports\n") &&
				strings.HasSuffix(cut, "\nexports")
		},
		"a clip of 1,500 tokens keeps 60 % of them at the beginning": func() (any, bool) {
			v := window(200_000).user(10).call("npm", 5, strings.Repeat("npm warn\n", 8000))
			_, edits := v.prune("deck", policy.Moment{})
			return edits, len(edits) == 1 && within(edits[0].Tail, 0.4, 0.02)
		},
		"the largest slice of a data set that fits in 10,000 tokens is shown": func() (any, bool) {
			var rows []int
			for i := range 20_000 {
				rows = append(rows, i)
			}
			raw, err := json.Marshal(rows)
			after, edits := window(200_000).user(10).call("query", 5, string(raw)).prune("alyx", policy.Moment{})
			n := after.CountText(said(after, 3))
			return edits, err == nil && n <= 10_000 && n > 9900
		},
		"long cells of large JSON are cut in the middle, with a reference to the whole": func() (any, bool) {
			raw, err := json.Marshal(map[string]any{"cell": sea(90_000), "rows": make([]int, 40_000)})
			after, _ := window(200_000).user(10).call("query", 5, string(raw)).prune("alyx", policy.Moment{})
			text := said(after, 3)
			return text, err == nil && strings.Contains(text, sea(100)+"… 90000 characters from offset 8 …") &&
				strings.Contains(text, "39996 of 40000 items")
		},
	} {
		if got, ok := holds(); !ok {
			t.Errorf("%s: %.300v", claim, got)
		}
	}
}

// Claims of harnesses about older results.
func TestClaimsAboutOldResults(t *testing.T) {
	t.Parallel()
	for claim, holds := range map[string]func() (any, bool){
		"the same file read on turns 3, 7, and 14 is shown once, by its newest copy": func() (any, bool) {
			v := window(200_000)
			for turn := range 15 {
				if v.user(20); turn == 3 || turn == 7 || turn == 14 {
					v.calling("read_file", `{"path":"a.go"}`, sea(3000))
				}
				v.says(20)
			}
			after, edits := v.prune(`{"preset":"deck","steps":{"recency":null}}`, policy.Moment{})
			again, _ := v.prune(`{"preset":"deck","steps":{"recency":null}}`, policy.Moment{})
			return edits, len(edits) == 2 && edits[0].CopySeq == edits[1].CopySeq && reflect.DeepEqual(after, again)
		},
		"a file that was edited between two reads is never shown as the same": func() (any, bool) {
			v := window(200_000).user(10).calling("read_file", `{"path":"config.yaml"}`, "a: 1\n"+sea(2000)).user(10)
			_, edits := v.calling("read_file", `{"path":"config.yaml"}`, "a: 2\n"+sea(2000)).says(5).
				prune(`{"preset":"deck","steps":{"recency":null}}`, policy.Moment{})
			return edits, len(edits) == 0
		},
		"keeping the oldest copy changes nothing before the new one": func() (any, bool) {
			v := window(200_000).user(10).call("read", 5, sea(3000)).user(10).call("read", 5, sea(3000)).says(5)
			_, edits := v.prune(`{"steps":[{"step":"dedup","keep":"oldest"}]}`, policy.Moment{})
			return edits, len(edits) == 1 && edits[0].Position == 6
		},
		"of repeated previews only the newest is kept": func() (any, bool) {
			v := window(200_000).user(10).repeat(5, "preview_data", 1000).says(5)
			after, edits := v.prune("alyx", policy.Moment{})
			return edits, len(edits) == 4 && len(said(after, 11)) == 1000
		},
		"compression grows with the age of a turn, not with what it says": func() (any, bool) {
			v := window(1_000_000).user(10)
			for range 40 {
				v.call("bash", 5, "error: important\n"+sea(9000))
			}
			after, _ := v.prune(`{"preset":"deck","steps":{"dedup":null}}`, policy.Moment{})
			grows := true
			last := 0
			for i := 3; i <= 81; i += 2 {
				n := len(said(after, i))
				grows, last = grows && n >= last, n
			}
			return last, grows && last > 5000
		},
		"results are shortened, then cleared, five minutes after the last prompt, and the log stays": func() (any, bool) {
			v := window(32_000).user(100).repeat(60, "read", 10_000)
			before := fmt.Sprint(v.Messages)
			_, edits := v.prune("openclaw", touched(5*time.Minute))
			_, early := v.prune("openclaw", touched(5*time.Minute-time.Second))
			n := kinds(edits)
			return n, n[clip.Clip] > 0 && n[clip.Stub] > 0 && len(early) == 0 && fmt.Sprint(v.Messages) == before
		},
		"results older than 30 seconds are cleared, those under 100 characters and the newest turn's are not": func() (any,
			bool) {
			v := window(200_000).user(10).repeat(2, "bash", 5000).repeat(1, "bash", 99).user(5).repeat(1, "bash", 5000)
			after, edits := v.prune(`{"preset":"memory-v2","steps":{"age_ttl":{"when":"always"}}}`,
				policy.Moment{Now: epoch.Add(time.Hour)})
			return edits, len(edits) == 2 && strings.Contains(said(after, 3), "result of bash cleared")
		},
		"a line takes a small part of a result: 23 of 847 tokens": func() (any, bool) {
			v := window(10_000)
			v.Messages = nil
			v.user(10).call("read_file", 5, strings.Repeat("export function one() {}\n", 140)).user(10).says(10).user(10)
			v.Window = clip.Estimate(v.View) * 10 / 7
			write := func(r []policy.LineRequest) []policy.Line {
				return []policy.Line{{Text: "read_file src/a.ts: 245 lines of TypeScript, 2 functions, 3 types"}}
			}
			after, edits := v.prune(`{"preset":"fourlayer-literal","steps":{"one_line":{"oldest_share":1}}}`,
				policy.Moment{Write: write})
			n := after.CountText(said(after, 3))
			return said(after, 3), len(edits) == 1 && n < 60
		},
		"the newest five results are only shortened": func() (any, bool) {
			v := window(10_000).user(10).repeat(8, "read", 12_000)
			after, _ := v.prune(`{"preset":"four-layers","steps":{"one_line":{"oldest_share":1,"stop_share":0}}}`,
				policy.Moment{})
			lines := 0
			for i := 3; i <= 17; i += 2 {
				if strings.HasPrefix(said(after, i), "[compacted") {
					lines++
				}
			}
			return lines, lines == 3
		},
		"errors are preserved longer": func() (any, bool) {
			v := window(10_000).user(10).repeat(8, "read", 9000)
			v.Messages[2].Content[0].IsError = true
			after, _ := v.prune(`{"preset":"four-layers","steps":{"one_line":{"oldest_share":1,"stop_share":0}}}`,
				policy.Moment{})
			return said(after, 3), len(said(after, 3)) == 9000 && len(said(after, 5)) < 500
		},
		"above 100,000 tokens all but the newest three results are cleared": func() (any, bool) {
			_, edits := window(200_000).user(10).repeat(10, "read", 60_000).prune("anthropic", policy.Moment{})
			return edits, len(edits) == 7
		},
		"three of four harnesses' steps lower the tokens of a long session, and none raises them": func() (any, bool) {
			v := window(200_000)
			for range 25 {
				v.user(300).repeat(3, "read", 12_000).says(400)
			}
			before := clip.Estimate(v.View)
			lower := 0
			for _, p := range policy.Presets() {
				after, _ := v.prune(p.Name, touched(time.Hour))
				if n := clip.Estimate(after); n > before {
					return p.Name, false
				} else if n < before*3/4 {
					lower++
				}
			}
			return lower, lower >= 6
		},
	} {
		if got, ok := holds(); !ok {
			t.Errorf("%s: %.300v", claim, got)
		}
	}
}

// Claims of the deck on prompts about prices: $15 per million tokens, and a tenth of that from the cache.
func TestClaimsAboutPrices(t *testing.T) {
	t.Parallel()
	prices := policy.UsualPrices
	for claim, c := range map[string]struct{ got, want float64 }{
		"200,000 tokens cost $3.00 a turn":                {prices.Uncached(200_000), 3},
		"30 turns of them cost $90":                       {30 * prices.Uncached(200_000), 90},
		"read from the cache they cost $0.30":             {prices.Prompt(200_000, 200_000), 0.30},
		"written to the cache they cost $3.75":            {prices.Prompt(200_000, 0), 3.75},
		"a change of 50,000 pays after 11.5 S/E = 23":     {prices.BreakEven(policy.Change{Saved: 5, Suffix: 10}), 23},
		"what follows a change is written, not read":      {prices.Penalty(policy.Change{Suffix: 100_000}), 1.725},
		"a change of what was not sent yet costs nothing": {prices.BreakEven(policy.Change{Saved: 5}), 0},
	} {
		if !within(c.got, c.want, 1e-9) {
			t.Errorf("%s: %v, not %v", claim, c.got, c.want)
		}
	}
}

// The system prompt never changes, because steps do not get it. The user's newest message stays unchanged.
func TestWhatIsSacredStays(t *testing.T) {
	t.Parallel()
	for _, p := range policy.Presets() {
		v := window(4000).user(50_000).repeat(5, "read", 20_000).user(60_000)
		v.Fixed = 4000
		after, _ := v.prune(p.Name, touched(time.Hour))
		last := after.AsShown()[len(v.Messages)-1]
		if after.Fixed != 4000 || len(last.Content[0].Text) != 60_000 || last.Role != recall.User {
			t.Errorf("%s: %d fixed, %d characters", p.Name, after.Fixed, len(last.Content[0].Text))
		}
	}
}
