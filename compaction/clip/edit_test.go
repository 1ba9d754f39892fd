package clip_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Each kind of edit shows less of a part, says how to read the whole part, and leaves the log unchanged.
func TestEachKindOfEditIsShown(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("one line of the result\n", 40) + "the end"
	thought := recall.Part{Type: recall.Reasoning, Text: "I think"}
	call := recall.Part{Type: recall.ToolCall, CallID: "a", Name: "run", Input: `{"path":"x"}`}
	question := recall.Part{Type: recall.Text, Text: "the the the the the the"}
	v := viewOf(recall.Message{Role: recall.User, Content: []recall.Part{question}},
		recall.Message{Role: recall.Assistant, Content: []recall.Part{thought, call}},
		recall.Message{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: text}}},
		recall.Message{Role: recall.User, Content: []recall.Part{question}})
	for name, c := range map[string]struct {
		edit clip.Edit
		want string // how the part is shown; empty: not at all
	}{
		"beginning and end": {clip.Edit{Position: 3, Chars: 46}, "characters left out"},
		"beginning":         {clip.Edit{Position: 3, Kind: clip.Head, Chars: 46}, "of the result\n\n[881 of 927"},
		"end":               {clip.Edit{Position: 3, Kind: clip.Ending, Chars: 46}, "the end"},
		"a share of the end": {clip.Edit{Position: 3, Chars: 230, Tail: 0.1},
			strings.Repeat("one line of the result\n", 9) + "\n["},
		"line": {clip.Edit{Position: 3, Kind: clip.Line, Text: "read x"}, "[read x: expand(id=3)]"},
		"pointer": {clip.Edit{Position: 3, Kind: clip.Pointer, CopySeq: 9},
			"[the same text as at seq 9: expand(id=3)]"},
		"stub":    {clip.Edit{Position: 3, Kind: clip.Stub, Text: "cleared"}, "[cleared: expand(id=3)]"},
		"call":    {clip.Edit{Position: 2, Part: 1, Kind: clip.Stub}, `{"cleared":"expand(id=2, offset=8)"}`},
		"thought": {clip.Edit{Position: 2, Kind: clip.Removed}, ""},
	} {
		with := v
		with.Edits = []clip.Edit{c.edit}
		m := clip.Shown(v.Messages, with.Edits)[c.edit.Position-1]
		switch whole := v.Messages[c.edit.Position-1]; {
		case c.want == "" && len(m.Content) != len(whole.Content)-1:
			t.Errorf("%s: %v", name, m.Content)
		case c.want != "":
			if p := m.Content[c.edit.Part]; !strings.Contains(p.Text+p.Input, c.want) {
				t.Errorf("%s: %q, want %q", name, p.Text+p.Input, c.want)
			}
		}
		if name != "call" && clip.Counted(with) >= clip.Counted(v) {
			t.Errorf("%s: %d tokens of %d", name, clip.Counted(with), clip.Counted(v))
		}
	}
	if v.Messages[2].Content[0].Text != text || len(v.Messages[1].Content) != 2 {
		t.Error("the log's messages changed")
	}
}

// viewOf returns a view of messages, and sets their positions and tokens.
func viewOf(messages ...recall.Message) clip.View {
	for i := range messages {
		m := &messages[i]
		m.Position, m.Seq, m.Tokens = i+1, int64(i+1), 4
		for _, p := range m.Content {
			m.Tokens += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input)
		}
	}
	return clip.View{Messages: messages}
}
