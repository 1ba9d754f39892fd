package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// Lines replace results in the older half above 60 % of the window. Each line is written once. Rules write the line if
// the model fails.
func TestOneLine(t *testing.T) {
	t.Parallel()
	requests := map[string]int{}
	cache := lineCache{}
	write := policy.LineWriter{Cache: cache, Parallel: 1, Ask: func(r policy.LineRequest) (string, error) {
		requests[r.Hash]++
		if strings.Contains(r.Prompt, "\n3 ") {
			return "", errors.New("it is overloaded")
		}
		return "read_file: exports\ntwo functions", nil
	}}.Write
	v := window(100_000).user(10).repeat(20, "read_file", 9000)
	used := clip.Estimate(v.View)
	literal := `{"preset":"fourlayer-literal","steps":{"snip":null}}`
	v.Window = (used*10 + 5) / 6
	if _, edits := v.prune(literal, policy.Moment{Write: write}); len(edits) > 0 || len(requests) > 0 {
		t.Errorf("at 60 %% of the window: %v", edits)
	}
	v.Window--
	for v.Window*6/10 >= used {
		v.Window--
	}
	at := policy.Moment{Write: write}
	after, edits := v.prune(literal, at)
	if len(edits) != 9 || len(requests) != 9 {
		t.Errorf("above 60 %%: %d lines of %d requests", len(edits), len(requests))
	}
	if want := "[compacted: read_file: exports two functions: expand(id=3)]"; after.AsShown()[2].Content[0].Text != want {
		t.Error(after.AsShown()[2].Content[0].Text)
	}
	failed := after.AsShown()[8].Content[0].Text
	if !strings.HasPrefix(failed, "[compacted without a model: read_file") {
		t.Error(failed)
	}
	v.Edits = after.Edits
	if _, edits = v.prune(literal, at); len(edits) > 0 {
		t.Errorf("again: %v", edits)
	}
	v.Edits = nil
	if _, edits = v.prune(literal, at); len(edits) != 9 {
		t.Errorf("without the edits: %v", edits)
	}
	for hash, n := range requests {
		if _, unchanged := cache[hash]; unchanged && n != 1 {
			t.Errorf("the line %s was asked for %d times", hash, n)
		}
	}
	_, edits = v.prune("four-layers", policy.Moment{})
	lines := slices.DeleteFunc(edits, func(e clip.Edit) bool { return e.Kind != clip.Line })
	if len(lines) == 0 || !strings.HasPrefix(lines[0].Text, "compacted without a model: read_file") {
		t.Errorf("without a model: %v", lines)
	}
}

// lineCache keeps lines in memory.
type lineCache map[string]string

func (c lineCache) Line(hash string) (string, bool) { line, ok := c[hash]; return line, ok }

func (c lineCache) Keep(hash, line string) { c[hash] = line }

// A failed result is known by its text, whatever API it came from: its error stays, and it replaces no older result of
// the same call.
func TestErrorsInTextsAreErrors(t *testing.T) {
	t.Parallel()
	v := window(0).user(10).repeat(8, "read", 9000)
	v.Messages[2].Content[0].Text = "Error: connection refused\n" + v.Messages[2].Content[0].Text
	v.Window = clip.Estimate(v.View) * 10 / 7
	after, edits := v.prune(`{"preset":"four-layers","steps":{"snip":null,"one_line":{"oldest_share":1,"stop_share":0}}}`,
		policy.Moment{})
	if len(edits) == 0 || !strings.HasPrefix(after.AsShown()[2].Content[0].Text, "Error: connection refused") {
		t.Errorf("the error: %.100s", after.AsShown()[2].Content[0].Text)
	}
	v = window(200_000).user(10).calling("list_orders", "{}", "7 rows: "+sea(500)).
		calling("list_orders", "{}", `{"status": "Failed", "message": "connection refused"}`)
	if _, edits := v.prune(`{"steps":[{"step":"idempotent_calls","tools":["*"]}]}`, policy.Moment{}); len(edits) > 0 {
		t.Errorf("a failed call supersedes a good result: %v", edits)
	}
}
