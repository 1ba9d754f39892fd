package policy

import (
	"cmp"
	"iter"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// result is a tool's result in a view.
type result struct {
	message int // index of its message in the view
	part    int // index in the message
	m       *recall.Message
	p       *recall.Part
	call    *recall.Part // the call that it answers; nil if that is not in the view
	caller  int          // index of the call's message; -1 if that is not in the view
	input   int          // index of the call in its message
	edit    *clip.Edit   // the view's edit of the result; nil if it is shown whole
}

func (r result) place() place { return place{r.m.Position, r.part} }

// toolName returns the name of the tool, or "a tool".
func (r result) toolName() string { return cmp.Or(r.tool(), "a tool") }

// chars returns the result's length in the log, in characters.
func (r result) chars() int { return tokens.Chars(r.p.Text) }

// longerThan reports whether the result has more than chars characters.
func (r result) longerThan(chars int) bool { return len(r.p.Text) > chars && r.chars() > chars }

// tool returns the name of the tool; empty if it is unknown.
func (r result) tool() string {
	if r.call == nil {
		return r.p.Name
	}
	return r.call.Name
}

// failed reports whether the result is an error.
func (r result) failed() bool { return r.m.IsErr || r.p.Failed() }

// shown returns the result as the model reads it.
func (r result) shown(v clip.View) recall.Part {
	if r.edit == nil {
		return *r.p
	}
	return v.ShownPart(*r.m, *r.edit)
}

// hasText reports whether the model reads any of the result's text.
func (r result) hasText() bool {
	return r.edit == nil || r.edit.Chars > 0 && showsText(*r.edit)
}

// showsText reports whether an edit shows any text of its part.
func showsText(e clip.Edit) bool {
	switch e.Kind {
	case clip.Line, clip.Pointer, clip.Stub, clip.Removed:
		return false
	}
	return true
}

// tokens returns the tokens of the result as shown.
func (r result) tokens(v clip.View) int { return v.PartTokens(*r.m, r.part, r.edit) }

// clip returns an edit that clips the result to chars characters.
func (r result) clip(step string, chars int) clip.Edit {
	return clip.Edit{Position: r.m.Position, Part: r.part, Chars: chars, Step: step}
}

// head returns an edit that shows only the result's first characters.
func (r result) head(step string, chars int) clip.Edit {
	e := r.clip(step, chars)
	e.Kind = clip.Head
	return e
}

// headAndTail returns an edit that shows the result's first and last characters.
func (r result) headAndTail(step string, head, tail int) clip.Edit {
	if tail <= 0 {
		return r.head(step, head)
	}
	e := r.clip(step, head+tail)
	e.Tail = float64(tail) / float64(head+tail)
	return e
}

// cleared is the text in place of a result that a step clears.
const cleared = "old result cleared"

// stub returns an edit that shows a short text instead of the result.
func (r result) stub(step, text string) clip.Edit {
	e := r.clip(step, 0)
	e.Kind, e.Text = clip.Stub, text
	return e
}

// line returns an edit that shows a line about the result.
func (r result) line(step, text string) clip.Edit {
	e := r.clip(step, 0)
	e.Kind, e.Text = clip.Line, text
	return e
}

// results yields the tool results in a view, the oldest first.
func results(v clip.View) iter.Seq[result] {
	return func(yield func(result) bool) {
		type call struct{ message, part int }
		edits := editsOf(v)
		open := recall.OpenCalls[call]{}
		for i := range v.Messages {
			m := &v.Messages[i]
			for n := range m.Content {
				p := &m.Content[n]
				switch p.Type {
				case recall.ToolCall:
					open.Add(p.CallID, call{i, n})
				case recall.ToolReturn:
					r := result{message: i, part: n, m: m, p: p, caller: -1, edit: edits[place{m.Position, n}]}
					if answered, ok := open.Answer(p.CallID); ok {
						r.caller, r.input, r.call = answered.message, answered.part, &v.Messages[answered.message].Content[answered.part]
					}
					if !yield(r) {
						return
					}
				}
			}
		}
	}
}

// newest returns the index of the first of a list's last n items.
func newest(length, n int) int { return max(length-n, 0) }

// backward returns the results, the newest first.
func backward(all []result) []result {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}
