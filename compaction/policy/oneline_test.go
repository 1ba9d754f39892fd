package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// Lines replace results in the older half above 60 % of the window. Each line is written once, and a result stays if
// its line fails.
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
	if len(edits) != 8 || len(requests) != 9 {
		t.Errorf("above 60 %%: %d lines of %d requests", len(edits), len(requests))
	}
	if want := "[compacted: read_file: exports two functions: expand(id=3)]"; after.AsShown()[2].Content[0].Text != want {
		t.Error(after.AsShown()[2].Content[0].Text)
	}
	v.Edits = after.Edits
	if _, edits = v.prune(literal, at); len(edits) > 0 {
		t.Errorf("again: %v", edits)
	}
	v.Edits = nil
	if _, edits = v.prune(literal, at); len(edits) != 8 {
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
