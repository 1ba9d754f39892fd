package clip

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// Edit says how a part of a message is shown otherwise than the log holds it: a tool's result, the arguments of a call,
// a text, or a reasoning. The log never changes; the tool expand reads the whole part by the id of the message. Of a
// summary, only a clip to its beginning is an edit. A part has at most one edit.
type Edit struct {
	Position int      `json:"position"` // of the message in its conversation; 0: the summary
	Part     int      `json:"part"`     // index in the message's content
	Kind     EditKind `json:"kind,omitempty" enum:"clip,head,tail,line,pointer,stub,removed"`
	Chars    int      `json:"chars"`                // of a clip: characters that are shown
	Tail     float64  `json:"tail_share,omitempty"` // of a clip: the share of Chars that are of the end; 0: a half
	// of a line or a stub: what is shown; of a clip: how its note begins
	Text    string `json:"text,omitempty"`
	CopySeq int64  `json:"copy_seq,omitempty"` // of a pointer: where in the agent's log the same text is
	Step    string `json:"step,omitempty"`     // the step of the policy that made the edit; empty: a compaction
	Tokens  int    `json:"tokens,omitempty"`   // of the part as it is shown, as Loci estimates them; 0: not known
}

// EditKind names what an edit shows of a part.
type EditKind string

// The kinds of edits, those that show most first.
const (
	Clip    EditKind = ""        // the beginning and the end, also written "clip"
	Head    EditKind = "head"    // the beginning
	Ending  EditKind = "tail"    // the end
	Line    EditKind = "line"    // a line that says what the part held
	Pointer EditKind = "pointer" // where in the log the same text is
	Stub    EditKind = "stub"    // that something was here; of a call, no arguments
	Removed EditKind = "removed" // nothing; only of a reasoning
)

// editKinds orders the kinds: an edit may be replaced by one of a later kind.
var editKinds = map[EditKind]int{Clip: 0, "clip": 0, Head: 0, Ending: 0, Line: 1, Pointer: 1, Stub: 2, Removed: 3}

// IsClip reports whether an edit shows characters of its part.
func (e Edit) IsClip() bool { return editKinds[e.Kind] == editKinds[Clip] }

// tailShare returns the share of a clip's characters that are of the end.
func (e Edit) tailShare() float64 {
	switch {
	case e.Kind == Head:
		return 0
	case e.Kind == Ending:
		return 1
	case e.Tail > 0:
		return min(e.Tail, 1)
	}
	return 0.5
}

// ShowsNoMoreThan reports whether an edit may replace another of its part: it shows no more characters of it.
func (e Edit) ShowsNoMoreThan(was Edit) bool {
	if e.IsClip() && was.IsClip() {
		return e.Chars <= was.Chars
	}
	return editKinds[e.Kind] >= editKinds[was.Kind]
}

// Compare orders edits by the parts that they are of.
func (e Edit) Compare(other Edit) int {
	return cmp.Or(cmp.Compare(e.Position, other.Position), cmp.Compare(e.Part, other.Part))
}

// MergeEdits returns edits with others in place of those of the same parts.
func MergeEdits(edits, others []Edit) []Edit {
	if len(others) == 0 {
		return edits
	}
	at := make(map[Place]int, len(edits)+len(others))
	all := slices.Clone(edits)
	for i, e := range all {
		at[Place{e.Position, e.Part}] = i
	}
	for _, e := range others {
		if i, ok := at[Place{e.Position, e.Part}]; ok {
			all[i] = e
			continue
		}
		at[Place{e.Position, e.Part}] = len(all)
		all = append(all, e)
	}
	return all
}

// EditsByPosition groups edits by the position of their message.
func EditsByPosition(edits []Edit) map[int][]Edit {
	if len(edits) == 0 {
		return nil
	}
	all := make(map[int][]Edit, len(edits))
	for _, e := range edits {
		all[e.Position] = append(all[e.Position], e)
	}
	return all
}

// IsEditOf reports whether an edit is of a part of the message, of a kind that the part may have.
func IsEditOf(e Edit, m recall.Message) bool {
	if m.Position != e.Position || e.Part < 0 || e.Part >= len(m.Content) || e.Chars < 0 {
		return false
	}
	p := m.Content[e.Part]
	if _, known := editKinds[e.Kind]; !known {
		return false
	}
	if e.Kind == Removed {
		return isReasoning(p) && slices.ContainsFunc(m.Content, func(p recall.Part) bool { return !isReasoning(p) })
	}
	return IsClippable(p, m.Role) || p.Type == recall.Text && m.Role == recall.User
}

func isReasoning(p recall.Part) bool {
	switch p.Type {
	case recall.Reasoning, recall.RedactedReasoning, recall.OmittedReasoning, recall.SummarizedReasoning:
		return true
	}
	return false
}

// IsClippable reports whether a compaction may clip a part of a message of a role: a result, the arguments of a call,
// or a text of the assistant. Edits of a policy may be of texts of the user, too, but of the newest.
func IsClippable(p recall.Part, role recall.Role) bool {
	return p.Type == recall.ToolReturn || p.Type == recall.ToolCall || p.Type == recall.Text && role == recall.Assistant
}

// ClippableText returns the text of a part that a clip shortens.
func ClippableText(p recall.Part) string {
	if p.Type == recall.ToolCall {
		return p.Input
	}
	return p.Text
}

// Place is the place of a part: the index of its message in the view, and its own index in the message.
type Place struct{ Message, Part int }
