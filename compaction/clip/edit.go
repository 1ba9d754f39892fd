package clip

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// Edit changes how a view shows a part of a message: a tool's result, a call's arguments, a text or a reasoning. A part
// has at most one edit. The log never changes, and the tool expand reads the whole part by the message's id. A summary
// can only be clipped to its beginning.
type Edit struct {
	Position int      `json:"position"` // position of the message in its conversation; 0: the summary
	Part     int      `json:"part"`     // index in the message's content
	Kind     EditKind `json:"kind,omitempty" enum:"clip,head,tail,line,current,pointer,stub,removed"`
	Chars    int      `json:"chars"`                // for a clip: characters that are shown
	Tail     float64  `json:"tail_share,omitempty"` // for a clip: the share of Chars from the end; 0: a half
	// A line, a stub or a current text shows this text. The note of a clip begins with it.
	Text    string `json:"text,omitempty"`
	CopySeq int64  `json:"copy_seq,omitempty"` // for a pointer: seq of the message with the same text
	Step    string `json:"step,omitempty"`     // the policy's step that made the edit; empty: a compaction
	Tokens  int    `json:"tokens,omitempty"`   // tokens of the part as shown, estimated by Loci; 0: not known
}

// EditKind is the form in which an edit shows its part.
type EditKind string

// The kinds of edits. The first show most.
const (
	Clip    EditKind = ""        // the beginning and the end, also written "clip"
	Head    EditKind = "head"    // the beginning
	Ending  EditKind = "tail"    // the end
	Line    EditKind = "line"    // a line that says what the part contained
	Current EditKind = "current" // what the text is now, or more of a long one; only for a result
	Pointer EditKind = "pointer" // a pointer to the message in the log with the same text
	Stub    EditKind = "stub"    // a note that something was here; a call loses its arguments
	// Removed shows nothing of a reasoning, or of a call and its result in the newest step. If it has a Text, a text of
	// the assistant stands there that says so.
	Removed EditKind = "removed"
)

// NoArguments is the Text of a stub of a call that says nothing of the arguments.
const NoArguments = "{}"

// editKinds ranks the kinds. An edit may be replaced by one of the same or a higher rank.
var editKinds = map[EditKind]int{Clip: 0, "clip": 0, Head: 0, Ending: 0, Line: 1, Current: 1, Pointer: 1, Stub: 2,
	Removed: 3}

// IsClip reports whether an edit shows characters of its part.
func (e Edit) IsClip() bool { return editKinds[e.Kind] == editKinds[Clip] }

// tailShare returns the share of a clip's characters that come from the end.
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

// ShowsNoMoreThan reports whether the edit shows at most as many characters as edit was of the same part. Then it may
// replace it.
func (e Edit) ShowsNoMoreThan(was Edit) bool {
	if e.IsClip() && was.IsClip() {
		return e.Chars <= was.Chars
	}
	return editKinds[e.Kind] >= editKinds[was.Kind]
}

// Compare orders edits by their parts.
func (e Edit) Compare(other Edit) int {
	return cmp.Or(cmp.Compare(e.Position, other.Position), cmp.Compare(e.Part, other.Part))
}

// MergeEdits returns edits, with others replacing edits of the same parts.
func MergeEdits(edits, others []Edit) []Edit {
	if len(others) == 0 {
		return edits
	}
	indexes := make(map[Place]int, len(edits)+len(others))
	all := slices.Clone(edits)
	for i, e := range all {
		indexes[Place{e.Position, e.Part}] = i
	}
	for _, e := range others {
		if i, ok := indexes[Place{e.Position, e.Part}]; ok {
			all[i] = e
			continue
		}
		indexes[Place{e.Position, e.Part}] = len(all)
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

// IsEditOf reports whether the message has the edit's part, and the part may have an edit of this kind.
func IsEditOf(e Edit, m recall.Message) bool {
	if m.Position != e.Position || e.Part < 0 || e.Part >= len(m.Content) || e.Chars < 0 {
		return false
	}
	p := m.Content[e.Part]
	if _, known := editKinds[e.Kind]; !known {
		return false
	}
	if e.Kind == Removed && (p.Type == recall.ToolCall || p.Type == recall.ToolReturn && e.Text == "") {
		return true
	}
	if e.Kind == Removed {
		isOther := func(p recall.Part) bool { return !isReasoning(p) }
		return e.Text == "" && isReasoning(p) && slices.ContainsFunc(m.Content, isOther)
	}
	if e.Kind == Current {
		return p.Type == recall.ToolReturn
	}
	return IsClippable(p, m.Role) || p.Type == recall.Text && m.Role == recall.User
}

// IsReasoning reports whether a part is a thought.
func IsReasoning(p recall.Part) bool { return isReasoning(p) }

func isReasoning(p recall.Part) bool {
	switch p.Type {
	case recall.Reasoning, recall.RedactedReasoning, recall.OmittedReasoning, recall.SummarizedReasoning:
		return true
	}
	return false
}

// IsClippable reports whether a compaction may clip a part, given the role of its message: a result, a call's
// arguments, or a text of the assistant. A policy may also edit the user's texts, except the newest.
func IsClippable(p recall.Part, role recall.Role) bool {
	return p.Type == recall.ToolReturn || p.Type == recall.ToolCall || p.Type == recall.Text && role == recall.Assistant
}

// ClippableText returns the text that a clip of the part shortens.
func ClippableText(p recall.Part) string {
	if p.Type == recall.ToolCall {
		return p.Input
	}
	return p.Text
}

// Place identifies a part by the index of its message in the view, and its own index in the message.
type Place struct{ Message, Part int }
