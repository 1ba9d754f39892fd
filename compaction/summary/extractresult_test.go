package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// A summary without a model quotes the line of a failed result that says why, even from the end of a long result.
func TestErrorsOfLongResultsAreQuoted(t *testing.T) {
	t.Parallel()
	log := strings.Repeat("=== RUN a case that passes\n", 2_000)
	for name, text := range map[string]string{
		"at the end":  log + "--- FAIL: TestOfKeys\n    keys differ\nexit status 1\n",
		"at the head": "--- FAIL: TestOfKeys\n" + log,
		"alone":       "--- FAIL: TestOfKeys",
	} {
		e := clip.Evicted{Budget: 2_000, Messages: []recall.Message{
			{Seq: 1, Position: 1, Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: "Run the tests."}}},
			{Seq: 2, Position: 2, Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "c",
				Name: "bash", Input: `{}`}}},
			{Seq: 3, Position: 3, Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "c",
				Text: text, IsError: true}}}}}
		s, err := summary.Summarize(t.Context(), e, plan.Defaults(), nil)
		if err != nil || !strings.Contains(s.Text, "- [3] bash: --- FAIL: TestOfKeys") {
			t.Errorf("%s: %v\n%s", name, err, s.Text)
		}
	}
}

// With very many results, a summary without a model reads only a few lines of each, and still quotes the line about an
// error.
func TestErrorsOfManyResultsAreQuoted(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("a line of what the tool wrote\n", 30)
	messages := []recall.Message{{Seq: 1, Position: 1, Role: recall.User,
		Content: []recall.Part{{Type: recall.Text, Text: "Run the tests."}}}}
	for n := 2; n < 2_000; n += 2 {
		id, text := fmt.Sprint(n), lines
		if n == 1_000 {
			text += "error: the disk sdb7 is full\n"
		}
		messages = append(messages,
			recall.Message{Seq: int64(n), Position: n, Role: recall.Assistant,
				Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "bash", Input: `{}`}}},
			recall.Message{Seq: int64(n + 1), Position: n + 1, Role: recall.Tool,
				Content: []recall.Part{{Type: recall.ToolReturn, CallID: id, Text: text}}})
	}
	s, err := summary.Summarize(t.Context(), clip.Evicted{Budget: 2_000, Messages: messages},
		plan.Defaults(), nil)
	if want := "- [1001] bash: error: the disk sdb7 is full"; err != nil || !strings.Contains(s.Text, want) {
		t.Errorf("%v, without %q:\n%s", err, want, s.Text)
	}
}

// Loci's own words, in its warning and in an empty summary, are not carried over.
func TestNothingOfLocisOwnIsCarriedOn(t *testing.T) {
	t.Parallel()
	warning := recall.Part{Type: recall.Text, Text: prose.WarningLine(3, 4)}
	messages := (&dialogue{}).add(recall.System, warning).user(strings.Repeat("the ", 96)).messages
	warned := messages[:1]
	first, err := summary.Summarize(t.Context(), clip.Evicted{Budget: 500, Messages: warned},
		plan.Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := summary.Summarize(t.Context(), clip.Evicted{Budget: 500, Messages: messages, Previous: &first},
		plan.Defaults(), nil)
	if err != nil || strings.Contains(second.Text, "Nothing was said") ||
		strings.Contains(second.Text, "conversation_search") {
		t.Errorf("%v: after %q: %q", err, first.Text, second.Text)
	}
}
