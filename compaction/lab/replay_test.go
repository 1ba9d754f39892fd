package lab_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// work returns a session in which each turn reads a file of many lines. Every fifth answer names something that only
// the file from five turns before says.
func work(turns int) transcript.Transcript {
	t := transcript.Transcript{Name: "work", System: "You repair programs."}
	text := func(role recall.Role, said string) {
		t.Drafts = append(t.Drafts, recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: said}}})
	}
	for i := range turns {
		id, path := fmt.Sprintf("call-%d", i), fmt.Sprintf("src/part_%03d.go", i)
		text(recall.User, fmt.Sprintf("What does part %d do?", i))
		t.Drafts = append(t.Drafts,
			recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "read_file",
				Input: `{"path":"` + path + `"}`}}},
			recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id,
				Text: fmt.Sprintf("package part\n%sconst limit_%03d = %d\n%s", strings.Repeat("// a line of it\n", 60), i, 7000+i,
					strings.Repeat("// a line of it\n", 60))}}})
		if i%5 == 4 {
			text(recall.Assistant, fmt.Sprintf("It uses limit_%03d.", i-4))
		} else {
			text(recall.Assistant, "It is a part.")
		}
	}
	return t
}

func replayed(t *testing.T, turns, window int, name string) lab.Result {
	t.Helper()
	p, err := policy.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Replay(t.Context(), work(turns), lab.Settings{Name: name, Policy: p, Window: window,
		Prices: policy.UsualPrices})
	if err != nil {
		t.Fatal(err)
	}
	r.Wall = 0
	return r
}

// In a window that holds the whole session nothing is hidden, and each prompt begins with the one before.
func TestAWindowThatHoldsAllShowsAll(t *testing.T) {
	t.Parallel()
	r := replayed(t, 20, 1_000_000, "letta")
	if r.Compactions+r.Edits+r.PairErrors+r.TooLarge > 0 || len(r.Missing) > 0 || r.Evidence.Share() != 1 {
		t.Errorf("got %+v", r)
	}
	if len(r.Turns) != 40 || r.Turns[0].Kept != 0 || r.Cost <= r.CachedCost {
		t.Errorf("got %d turns, %v, %v", len(r.Turns), r.Cost, r.CachedCost)
	}
	for i, turn := range r.Turns[1:] {
		if turn.Kept < r.Turns[i].Tokens-10 {
			t.Errorf("turn %d kept %d of %d tokens", i+1, turn.Kept, r.Turns[i].Tokens)
		}
	}
}

// Each preset keeps prompts within the window, loses nothing, leaves a way to what is used, and gives the same result
// each time.
func TestPresetsAreReplayed(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	whole := replayed(t, 60, 1_000_000, "letta").Tokens // in a window that holds everything
	for _, p := range policy.Presets() {
		r := replayed(t, 60, 16_000, p.Name)
		if r.PairErrors+r.TooLarge+r.Evidence.Lost > 0 || r.Compactions+r.Edits == 0 {
			t.Errorf("%s: %d pair errors, %d too large, %+v, %d compactions, %d edits", p.Name, r.PairErrors, r.TooLarge,
				r.Evidence, r.Compactions, r.Edits)
		}
		if r.Evidence.Total() == 0 || r.Evidence.Total() != r.Evidence.InView+len(r.Missing) {
			t.Errorf("%s: %+v, %d missing", p.Name, r.Evidence, len(r.Missing))
		}
		if r.Tokens >= whole {
			t.Errorf("%s: %d tokens, and %d in a window that holds all", p.Name, r.Tokens, whole)
		}
		if again := replayed(t, 60, 16_000, p.Name); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: two replays differ", p.Name)
		}
	}
}

// If an answer uses something that a policy has cleared, the replay counts it as one call of expand away.
func TestWhatIsClearedIsOneExpandAway(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte(`{"steps":[{"step":"clear_tool_uses","trigger_tokens":1000,"keep":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Replay(t.Context(), work(10), lab.Settings{Name: "clear", Policy: p, Window: 1_000_000,
		Prices: policy.UsualPrices})
	if err != nil || r.Evidence.Expand != 2 || r.Missing[0].Entity != "limit_000" || r.Missing[0].Newest != 3 {
		t.Errorf("got %+v, %+v, %v", r.Evidence, r.Missing, err)
	}
}

// The replay looks for the messages that a data set names as evidence after the session.
func TestEvidenceOfQuestionsIsLookedFor(t *testing.T) {
	t.Parallel()
	all, err := transcript.Read("set", strings.NewReader(`{"messages":[
		{"role":"user","content":"It is in May.","id":"D1:1"},{"role":"assistant","content":"Good.","id":"D1:2"},
		{"role":"user","content":"`+strings.Repeat("More to say. ", 9000)+`"},{"role":"assistant","content":"Yes."},
		{"role":"user","content":"And?"},{"role":"assistant","content":"So."}],
		"questions":[{"question":"When?","answer":"May","evidence":["D1:1"]},{"question":"x","evidence":["D9:9"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for window, want := range map[int]lab.Evidence{1_000_000: {InView: 1}, 8_000: {Search: 1}} {
		p, err := policy.Preset("letta")
		if err != nil {
			t.Fatal(err)
		}
		r, err := lab.Replay(t.Context(), all[0], lab.Settings{Policy: p, Window: window})
		if err != nil || r.Evidence != want || !r.OfQuestions {
			t.Errorf("%d: %+v, %v", window, r.Evidence, err)
		}
	}
}
