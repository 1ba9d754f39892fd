package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// Layer 1 shows and leaves out exactly what the pattern says.
func TestSnipGoldenNumbers(t *testing.T) {
	t.Parallel()
	step := `{"steps":[{"step":"snip"}]}`
	for chars, out := range map[int]int{10_000: 0, 10_001: 4001, 25_000: 19_000} {
		after, _ := window(200_000).user(10).call("read", 5, sea(chars)).prune(step, policy.Moment{})
		shown := after.AsShown()[2].Content[0].Text
		if want := fmt.Sprintf("[%d of %d characters left out", out, chars); strings.Contains(shown, want) != (out > 0) {
			t.Errorf("%d characters: %.100s", chars, shown)
		}
	}
}

// A result's end is shown if it says how the call went. For commands, the last 2,000 lines or 51,200 bytes are shown:
// whole lines, or the end of a longer last line. Results of other tools stay.
func TestCommandTailGoldenNumbers(t *testing.T) {
	t.Parallel()
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, tool, text, begins string
		bytes                    int // bytes of the text that are shown; 0: all
	}{
		{"8,000 lines", "bash", numbered(8_000), "6001\n", 10_000},
		{"2,000 lines", "bash", numbered(2_000), "1\n", 0},
		{"2,001 lines, of which a note would take more than one", "run_tests", numbered(2_001), "1\n", 0},
		{"2,999 lines", "run_tests", numbered(2_999), "1000\n", 10_000},
		{"long lines", "shell_exec", strings.Repeat(strings.Repeat("x", 511)+"é\n", 80) + strings.Repeat("z", 20_000),
			"x", 60*514 + 20_000},
		{"one long line", "bash", strings.Repeat("é", 40_000), "é", 51_200},
		{"one long line of odd bytes", "bash", "x" + strings.Repeat("日", 30_000), "日", 51_198},
		{"another tool", "read_file", numbered(8_000), "1\n", 0},
		{"nothing", "bash", "", "", 0},
	} {
		v := window(200_000).user(10).call(c.tool, 5, c.text)
		after, _ := v.prune(`{"steps":[{"step":"command_tail"}]}`, policy.Moment{})
		said := after.AsShown()[2].Content[0].Text
		_, shown, cut := strings.Cut(said, "]\n")
		if !cut {
			shown = said
		}
		if cut != (c.bytes > 0) || !strings.HasPrefix(shown, c.begins) || !strings.HasSuffix(c.text, shown) ||
			!utf8.ValidString(shown) || cut && len(shown) != c.bytes {
			t.Errorf("%s: %d bytes are shown from %.20q on, %v", c.name, len(shown), shown, cut)
		}
	}
}

func TestImportantTail(t *testing.T) {
	t.Parallel()
	step := `{"steps":[{"step":"important_tail"}]}`
	for _, c := range []struct {
		name, end string
		window    int
		most      int
		tail      bool
	}{
		{"an error", "\nTraceback: it went wrong", 200_000, 16_000, true},
		{"JSON", "\n}", 200_000, 16_000, true},
		{"a summary", "\nTotal: 40", 200_000, 16_000, true},
		{"errors of a type", "\nTypeErrors: 3", 200_000, 16_000, true},
		{"nothing", "\nand so on", 200_000, 16_000, false},
		{"a name with an error in it", "\nreturn fmt.Errorf(undone)", 200_000, 16_000, false},
		{"a small window", "\nTraceback: it went wrong", 8000, 9600, true},
	} {
		v := window(c.window).user(10).call("bash", 5, sea(40_000)+c.end)
		after, _ := v.prune(step, policy.Moment{})
		text := after.AsShown()[2].Content[0].Text
		if n := len(text); n > c.most || n < c.most/2 || strings.HasSuffix(text, strings.TrimSpace(c.end)) != c.tail {
			t.Errorf("%s: %d characters that end in %q", c.name, n, text[n-50:])
		}
	}
}

// A result above its bound is shown as a preview. If a message's results are together above theirs, the longest become
// previews, too.
func TestOffloadGoldenNumbers(t *testing.T) {
	t.Parallel()
	message := func(chars ...int) *viewBuilder {
		v := window(1_000_000).user(10)
		var calls, results []recall.Part
		for i, n := range chars {
			id := fmt.Sprint("call_", i)
			calls, results = append(calls, called(id, "grep", "{}")), append(results, result(id, sea(n)))
		}
		return v.put(recall.Assistant, calls...).put(recall.Tool, results...)
	}
	parallel := func(chars ...int) *viewBuilder { // each result is a message
		v := message(chars...)
		all := v.Messages[len(v.Messages)-1].Content
		v.Messages = v.Messages[:len(v.Messages)-1]
		for _, r := range all {
			v.put(recall.Tool, r)
		}
		return v
	}
	for _, c := range []struct {
		name string
		v    *viewBuilder
		want int
	}{
		{"60 KB on the first turn", message(61_440), 1},
		{"49,999 characters", message(49_999), 0},
		{"6 of 42,000 in a message", message(42_000, 42_000, 42_000, 42_000, 42_000, 42_000), 2},
		{"6 of 45,000 in messages that answer one", parallel(45_000, 45_000, 45_000, 45_000, 45_000, 45_000), 2},
		{"150,000 in each of two messages", message(50_000, 50_000, 50_000).repeat(3, "grep", 50_000), 0},
	} {
		after, edits := c.v.prune("claude-code", policy.Moment{})
		if len(edits) != c.want {
			t.Errorf("%s: %d previews, want %d", c.name, len(edits), c.want)
		}
		for _, e := range edits {
			if n := len(after.AsShown()[e.Position-1].Content[e.Part].Text); n > 2300 {
				t.Errorf("%s: a preview of %d bytes", c.name, n)
			}
		}
	}
	v := window(1_000_000).user(10).repeat(1, "expand", 60_000)
	if _, edits := v.prune("claude-code", policy.Moment{}); len(edits) > 0 {
		t.Error("what expand returns is cut")
	}
}

// A clip stays within its tokens, gives 60 % of them to the beginning, and is not made if it saves nothing.
func TestTokenClip(t *testing.T) {
	t.Parallel()
	const total = 8000
	words := strings.Repeat("the ", total-1) + "end"
	for _, bound := range []int{64, 1000, 1500, 3000} {
		step := fmt.Sprintf(`{"steps":[{"step":"token_clip","max_tokens":%d}]}`, bound)
		after, edits := window(200_000).user(10).call("bash", 5, words).prune(step, policy.Moment{})
		text := after.AsShown()[2].Content[0].Text
		n := after.CountText(text)
		if len(edits) != 1 || n > bound || n < bound*9/10 && bound > 100 || !strings.HasSuffix(text, "end") ||
			edits[0].Tail < 0.39 || edits[0].Tail > 0.41 && bound > 100 {
			t.Errorf("%d of %d tokens: %v of %d", bound, total, edits, n)
		}
	}
	v := window(200_000).user(10).call("bash", 5, strings.Repeat("the ", 1500)+"end")
	if _, edits := v.prune(`{"steps":[{"step":"token_clip"}]}`, policy.Moment{}); len(edits) > 0 {
		t.Errorf("a clip to 1,500 of 1,501 tokens: %v", edits)
	}
}

// The beginning and end of a clip share what the note leaves of the bound. The claims give the beginning its share of
// the whole bound, and the end the rest minus 12 tokens for a note. Our notes are longer: clips start with 48 tokens
// for the note, and get shorter until everything fits.
func TestEndsOfAClipShareWhatTheNoteLeaves(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "line %04d\n", i)
	}
	for _, share := range []float64{0.6, 0.25} {
		for _, bound := range []int{500, 1500} {
			step := fmt.Sprintf(`{"steps":[{"step":"token_clip","max_tokens":%d,"head_share":%g}]}`, bound, share)
			after, edits := window(200_000).user(10).call("bash", 5, text.String()).prune(step, policy.Moment{})
			shown := after.AsShown()[2].Content[0].Text
			head, tail := sharedEnds(shown, text.String())
			note := after.CountText(shown[head : len(shown)-tail])
			got := float64(head) / float64(head+tail)
			if n := after.CountText(shown); len(edits) != 1 || n > bound || n < bound*9/10-16 || note <= 12 || note > 48 ||
				math.Abs(got-share) > 0.05 {
				t.Errorf("%g of %d tokens: %d tokens, %d of them the note, %d + %d characters (%.2f)", share, bound, n,
					note, head, tail, got)
			}
		}
	}
}

// sharedEnds returns how many bytes at the beginning and at the end two texts have in common.
func sharedEnds(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// LargestSlice shows as many rows as fit; one more would not.
func TestLargestSlice(t *testing.T) {
	t.Parallel()
	var rows []map[string]string
	lines := ""
	for i := range 1000 {
		row := fmt.Sprintf("%04d %s", i, strings.Repeat(" the", 44))
		rows, lines = append(rows, map[string]string{"row": row}), lines+row+"\n"
	}
	list, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	step := `{"steps":[{"step":"largest_slice","budget_tokens":10000}]}`
	for name, result := range map[string]string{"lines": lines, "a JSON list": string(list)} {
		v := window(200_000).user(10).call("query", 5, result)
		after, edits := v.prune(step, policy.Moment{})
		text := after.AsShown()[2].Content[0].Text
		var shown int
		if len(edits) != 1 {
			t.Fatalf("%s: %v", name, edits)
		}
		if _, err := fmt.Sscanf(edits[0].Text, "%d of 1000 rows", &shown); err != nil || shown < 150 ||
			after.CountText(text) > 10_000 || !strings.Contains(text, fmt.Sprintf("%04d", shown-1)) ||
			strings.Contains(text, fmt.Sprintf("%04d  the", shown)) || !strings.Contains(text, "["+edits[0].Text+"; ") {
			t.Errorf("%s: %v, %d tokens, ends in %q", name, edits, after.CountText(text), text[len(text)-200:])
		}
		one := after.CountText(result) / 1000
		if after.CountText(text)+one+5 < 10_000-one {
			t.Errorf("%s: another row of %d tokens would fit in the rest of %d", name, one, after.CountText(text))
		}
	}
	after, edits := window(200_000).user(10).call("query", 5, strings.Repeat("x ", 50_000)).prune(step, policy.Moment{})
	if text := after.AsShown()[2].Content[0].Text; len(edits) != 1 || after.CountText(text) > 10_000 {
		t.Errorf("one row that does not fit: %v", edits)
	}
	v := window(200_000).user(10).call("bash", 5, lines+"FAIL: it ends so")
	v.Messages[2].Content[0].IsError = true
	after, _ = v.prune(step, policy.Moment{})
	if text := after.AsShown()[2].Content[0].Text; !strings.HasSuffix(text, "FAIL: it ends so") ||
		!strings.HasPrefix(text, lines[:100]) || after.CountText(text) > 10_000 {
		t.Errorf("a failed result shows %d tokens that end in %q", after.CountText(text), text[len(text)-100:])
	}
}

// A JSON preview fits, says how many items there are, and leads to each text that it cuts.
func TestJSONPreview(t *testing.T) {
	t.Parallel()
	var rows []any
	for i := range 2000 {
		rows = append(rows, map[string]any{"id": i, "note": fmt.Sprint(i) + strings.Repeat("é<x>", 300),
			"tags": []int{1, 2, 3, 4, 5, 6, 7}})
	}
	raw, err := json.Marshal(map[string]any{"rows": rows, "total": 2000, "none": nil})
	if err != nil {
		t.Fatal(err)
	}
	v := window(1_000_000).user(10).call("query", 5, string(raw))
	after, edits := v.prune(`{"steps":[{"step":"json_preview","budget_tokens":2000}]}`, policy.Moment{})
	if len(edits) != 1 {
		t.Fatal(edits)
	}
	text := after.AsShown()[2].Content[0].Text
	if after.CountText(text) > 2000 || !strings.Contains(text, `"… 1996 of 2000 items"`) ||
		!strings.Contains(text, `"total":2000`) || !strings.Contains(text, `"id":1999`) ||
		!strings.HasSuffix(text, ": expand(id=3)]") {
		t.Errorf("%d tokens: %s", after.CountText(text), text)
	}
	_, object, _ := strings.Cut(strings.TrimSuffix(text, ": expand(id=3)]"), "characters: ")
	if !json.Valid([]byte(object)) {
		t.Errorf("the preview is no JSON: %s", object)
	}
	var chars, offset int
	_, at, _ := strings.Cut(text, "… ")
	if _, err := fmt.Sscanf(at, "%d characters from offset %d …", &chars, &offset); err != nil {
		t.Fatal(at, err)
	}
	var cell string
	if err := json.NewDecoder(strings.NewReader(v.Messages[2].Text()[offset:])).Decode(&cell); err != nil ||
		utf8.RuneCountInString(cell) != chars || !strings.HasPrefix(cell, "0é") {
		t.Errorf("offset %d leads to %.50q: %v", offset, cell, err)
	}
}

// Whatever a result contains and whatever the bound, the shown text with its note is within the bound.
func TestFittedResultsKeepToTheirBounds(t *testing.T) {
	t.Parallel()
	texts := []string{strings.Repeat("0123456789", 3_000),
		strings.Repeat("a line of a log\n", 2_000) + "error: exit code 3",
		strings.Repeat("記憶服務器保存每一個消息。", 1_500) + "failed", strings.Repeat("👩‍🚀🙂", 3_000), strings.Repeat("x", 700),
		"[" + strings.Repeat(`{"id":4711,"name":"a name"},`, 2_000) + `{"id":1}]`,
		`{"rows":[` + strings.Repeat(`{"id":4711,"text":"`+strings.Repeat("long ", 90)+`"},`, 300) + `{"id":1}]}`}
	for _, c := range []struct {
		step, setting string
		most          []int
		chars         bool // the bound is in characters, otherwise in tokens
	}{
		{"important_tail", "max_chars", []int{500, 501, 513, 999, 4_000, 16_000}, true},
		{"token_clip", "max_tokens", []int{64, 65, 66, 99, 400, 1_500, 4_000}, false},
		{"largest_slice", "budget_tokens", []int{64, 65, 66, 99, 400, 1_500, 4_000}, false},
		{"json_preview", "budget_tokens", []int{100, 101, 199, 400, 1_500, 4_000}, false},
	} {
		for i, text := range texts {
			for _, most := range c.most {
				v := window(200_000).user(10).call("read", 5, text)
				if most%2 == 0 { // the result is not in the log yet, so its note has a long id
					v.Messages[2].Seq, v.Messages[2].ID = 0, "message-6d1c9a52-8c1f-4f0e-9d55-0e0a4e1a2b3c"
				}
				after, edits := v.prune(fmt.Sprintf(`{"steps":[{"step":%q,%q:%d}]}`, c.step, c.setting, most), policy.Moment{})
				if len(edits) == 0 {
					continue
				}
				shown := after.AsShown()[2].Content[0].Text
				takes := after.PartTokens(after.Messages[2], 0, &edits[0])
				if c.chars {
					takes = utf8.RuneCountInString(shown)
				}
				if takes > most {
					t.Errorf("%s of %d: text %d takes %d: %.60s … %.100s", c.step, most, i, takes, shown,
						shown[max(len(shown)-100, 0):])
				}
			}
		}
	}
}
