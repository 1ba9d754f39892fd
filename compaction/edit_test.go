package compaction_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/recall"
)

// Each kind of edit shows less of a part, says how to read the whole of it, and leaves the log's text unchanged.
func TestEachKindOfEditIsShown(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("one line of the result\n", 40) + "the end"
	thought := recall.Part{Type: recall.Reasoning, Text: "I think"}
	v := window(0, 0).say(recall.User, 10).put(recall.Assistant, "", thought, called("a", `{"path":"x"}`)).
		put(recall.Tool, "", result("a", text)).say(recall.User, 10).View
	for name, c := range map[string]struct {
		edit compaction.Edit
		want string // of the part; empty: the part is gone
	}{
		"beginning and end": {compaction.Edit{Position: 3, Chars: 46}, "characters left out"},
		"beginning":         {compaction.Edit{Position: 3, Kind: compaction.Head, Chars: 46}, "of the result\n\n[881 of 927"},
		"end":               {compaction.Edit{Position: 3, Kind: compaction.Ending, Chars: 46}, "the end"},
		"a share of the end": {compaction.Edit{Position: 3, Chars: 230, Tail: 0.1},
			strings.Repeat("one line of the result\n", 9) + "\n["},
		"line": {compaction.Edit{Position: 3, Kind: compaction.Line, Text: "read x"}, "[read x: expand(id=3)]"},
		"pointer": {compaction.Edit{Position: 3, Kind: compaction.Pointer, CopySeq: 9},
			"[the same text as at seq 9: expand(id=3)]"},
		"stub":    {compaction.Edit{Position: 3, Kind: compaction.Stub, Text: "cleared"}, "[cleared: expand(id=3)]"},
		"call":    {compaction.Edit{Position: 2, Part: 1, Kind: compaction.Stub}, `{"cleared":"expand(id=2, offset=8)"}`},
		"thought": {compaction.Edit{Position: 2, Kind: compaction.Removed}, ""},
	} {
		with := v
		with.Edits = []compaction.Edit{c.edit}
		m := compaction.Shown(v.Messages, with.Edits)[c.edit.Position-1]
		switch whole := v.Messages[c.edit.Position-1]; {
		case c.want == "" && len(m.Content) != len(whole.Content)-1:
			t.Errorf("%s: %v", name, m.Content)
		case c.want != "":
			if p := m.Content[c.edit.Part]; !strings.Contains(p.Text+p.Input, c.want) {
				t.Errorf("%s: %q, want %q", name, p.Text+p.Input, c.want)
			}
		}
		if name != "call" && compaction.Count(with) >= compaction.Count(v) {
			t.Errorf("%s: %d tokens of %d", name, compaction.Count(with), compaction.Count(v))
		}
	}
	if v.Messages[2].Content[0].Text != text || len(v.Messages[1].Content) != 2 {
		t.Error("the log's messages changed")
	}
}
