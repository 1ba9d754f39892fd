package clip

import (
	"fmt"
	"slices"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// Shown returns messages as a model sees them with these edits. The given messages do not change.
func Shown(messages []recall.Message, edits []Edit) []recall.Message {
	return shownWith(messages, edits, nil)
}

// shownWith is Shown for a model with these tools. The result takes no more tokens than with all tools.
func shownWith(messages []recall.Message, edits []Edit, has recall.Toolset) []recall.Message {
	byPosition := EditsByPosition(edits)
	if len(byPosition) == 0 {
		return messages
	}
	shown := slices.Clone(messages)
	for i, m := range shown {
		removed := false
		for n, e := range byPosition[m.Position] {
			if n == 0 {
				shown[i].Content = slices.Clone(m.Content)
			}
			if IsEditOf(e, m) {
				shown[i].Content[e.Part] = editedPart(messages, m, e, has)
				removed = removed || e.Kind == Removed
			}
		}
		if removed {
			shown[i].Content = slices.DeleteFunc(shown[i].Content, func(p recall.Part) bool { return p.Type == "" })
		}
	}
	return shown
}

// ShownPart returns a part of message m as a model sees it with edit e. A removed part has no type.
func (v View) ShownPart(m recall.Message, e Edit) recall.Part {
	return editedPart(v.Messages, m, e, v.Has)
}

// editedPart returns the edited part of message m. A removed part has no type.
func editedPart(view []recall.Message, m recall.Message, e Edit, has recall.Toolset) recall.Part {
	switch p := m.Content[e.Part]; {
	case e.IsClip():
		return clippedPart(view, m, e, has)
	case e.Kind == Removed && e.Text != "":
		return recall.Part{Type: recall.Text, Text: e.replacement(m, has)}
	case e.Kind == Removed:
		return recall.Part{}
	case e.Kind == Current:
		p.Text, p.Clip, p.Stdout, p.Stderr, p.NoteAt = e.Text, nil, nil, nil, [2]int{}
		p.Images, p.ImagesAt = nil, nil
		return p
	case p.Type == recall.ToolCall && e.Text == NoArguments:
		p.Input = NoArguments
		return p
	case p.Type == recall.ToolCall:
		p.Input = string(chat.Encode(map[string]string{"cleared": readHint(m, e.Part, has)}))
		return p
	default:
		p.Text, p.Clip, p.Stdout, p.Stderr = e.replacement(m, has), nil, nil, nil
		p.Kind, p.Extra = "", ""
		p.Images, p.ImagesAt = nil, nil
		p.NoteAt = [2]int{0, len(p.Text)}
		return p
	}
}

// replacement returns the text that is shown instead of a part's text.
func (e Edit) replacement(m recall.Message, has recall.Toolset) string {
	text := e.Text
	if e.Kind == Pointer {
		text = fmt.Sprintf("the same text as at seq %d", e.CopySeq)
	}
	hint := readHint(m, e.Part, has)
	if hint != "" {
		hint = ": " + hint
	}
	return "[" + frame.Neutralize(text) + hint + "]"
}

// readHint returns the call that reads a part of a message; empty if the model lacks the tool for it.
func readHint(m recall.Message, part int, has recall.Toolset) string {
	offset := ""
	if at := textOffset(m, part); at > 0 {
		offset = fmt.Sprintf(", offset=%d", at)
	}
	return has.Hint("expand", fmt.Sprintf("expand(id=%s%s)", reference(m), offset))
}

// TextOffset returns the byte at which a part begins in the text of its message, as the tool expand reads that text.
func TextOffset(m recall.Message, part int) int { return textOffset(m, part) }

// clippedPart returns a clipped part. A clip to 0 characters also drops the part's images.
func clippedPart(view []recall.Message, m recall.Message, e Edit, has recall.Toolset) recall.Part {
	p := m.Content[e.Part]
	page, expanded := expandedPage(view, p)
	text := p.Text
	switch {
	case expanded:
		text, p.NoteAt = clippedPage(p.Text, page, e.Chars, has)
	case p.Type == recall.ToolCall:
		p.Input = clippedInput(m, e, has)
	case p.Clip != nil:
		text, p.NoteAt = clippedPreview(p, e.Chars, has)
	default:
		mark := marker{reference(m), textOffset(m, e.Part), readLimit(e.Chars), has, e.tailShare(), e.Text}
		text, p.NoteAt = clipped(p.Text, e.Chars, mark)
	}
	p.ReplaceText(text, func(before string) string { return before })
	if p.Type == recall.Text {
		p.Kind, p.Extra = "", ""
	}
	if n := len(p.Images); e.Chars == 0 && n > 0 {
		p.Text, p.Images, p.ImagesAt = p.Text+"\n"+fmt.Sprintf(frame.ImagesLeftOut, n), nil, nil
		p.NoteAt = [2]int{0, len(p.Text)} // only the note is left
	}
	return p
}

// ShownChars returns how many characters of the original a part shows without a clip.
func ShownChars(p recall.Part) int {
	if p.Clip != nil {
		return tokens.Chars(p.Text[:min(max(p.Clip.Shown, 0), len(p.Text))])
	}
	return tokens.Chars(ClippableText(p))
}
