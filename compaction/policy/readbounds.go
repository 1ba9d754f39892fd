package policy

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall/tokens"
)

// ReadBounds bounds what Loci's tools open_files and grep_files show of files when they are called. The tools keep to
// its numbers; the step itself shows a read that repeats an older one as a pointer to it.
type ReadBounds struct {
	MaxLines      int    `json:"max_lines" min:"1" max:"10000000"`
	MaxBytes      int    `json:"max_bytes" min:"100" max:"10000000"`
	MaxTokens     int    `json:"max_tokens" min:"0" max:"10000000" doc:"Of it, as Loci estimates them. 0: no bound."`
	MaxLineChars  int    `json:"max_line_chars" min:"0" max:"1000000"`
	MaxMatchChars int    `json:"max_match_chars" min:"0" max:"1000000"`
	UnchangedStub bool   `json:"unchanged_stub"`
	Continuation  string `json:"continuation" oneof:"call,pi,claude-code"`
}

func (*ReadBounds) describe() Mechanism {
	return Mechanism{Name: "read_bounds", Stage: Enter, Source: "Pi, Claude Code",
		Words: "Bounds what the tools open_files (with include_content) and grep_files show at once: whole lines, and a " +
			"sentence that says how to read on. Results of other tools stay as they are.",
		Settings: map[string]string{
			"max_lines":       "Lines of a file, or of a page of matches, that one call shows.",
			"max_bytes":       "Bytes of a file, or of a page of matches, that one call shows.",
			"max_line_chars":  "Longer lines of files are cut: their text, beside the line number. 0: no bound.",
			"max_match_chars": "So are longer lines among matches. 0: no bound.",
			"unchanged_stub": "Whether a read that repeats an older one, and shows the same text, is shown as a line that " +
				"leads to it, as long as the older one is shown whole.",
			"continuation": "The sentence that says how to read on: as each harness words it, or the call alone.",
		},
		New: func() Step {
			return &ReadBounds{MaxLines: 2_000, MaxBytes: 50 << 10, MaxMatchChars: 500, Continuation: "call"}
		}}
}

// readTools are the tools that keep to the bounds.
var readTools = []string{"open_files", "grep_files"}

// Edits points repeated reads to the ones that they repeat.
func (b *ReadBounds) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	if !b.UnchangedStub {
		return nil
	}
	first := map[string]result{}
	for r := range results(v) {
		if r.edit != nil || r.call == nil || r.failed() || !selects(readTools, nil, r.tool()) {
			continue
		}
		read := r.call.Name + "\x00" + sameText(r.p) // which names the file and its lines
		was, ok := first[read]
		if !ok {
			first[read] = r
			continue
		}
		if was.m.Seq != r.m.Seq {
			e := r.clip("read_bounds", 0)
			e.Kind, e.CopySeq = clip.Pointer, was.m.Seq
			edits = append(edits, e)
		}
	}
	return edits
}

// ReadBounds returns the step that bounds what tools read of files; nil if the policy has none.
func (p Policy) ReadBounds() *ReadBounds {
	for _, s := range p.Steps {
		if b, ok := s.(*ReadBounds); ok {
			return b
		}
	}
	return nil
}

// Fits reports whether a text is within the bounds of one call. Nil bounds nothing.
func (b *ReadBounds) Fits(text string) bool {
	return b == nil || strings.Count(text, "\n") < b.MaxLines && len(text) <= b.MaxBytes && b.fitsTokens(text)
}

func (b *ReadBounds) fitsTokens(text string) bool {
	return b.MaxTokens == 0 || len(text) <= b.MaxTokens || tokens.Estimate(text) <= b.MaxTokens
}

// Lines returns the most lines at the beginning of a text that are within the bounds: all, or whole ones. It is empty
// if not even the first one is.
func (b *ReadBounds) Lines(text string) string {
	if b.Fits(text) {
		return text
	}
	ends := []int{0} // of the lines, without their line ends
	for i := range len(text) + 1 {
		if i == len(text) || text[i] == '\n' {
			if len(ends) > b.MaxLines || i > b.MaxBytes {
				break
			}
			ends = append(ends, i)
		}
	}
	low, high := 0, len(ends)-1
	for low < high { // the most lines whose tokens fit
		middle := (low + high + 1) / 2
		if b.fitsTokens(text[:ends[middle]]) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return text[:ends[low]]
}

// CutLine returns a line of a file with at most some characters, and a mark if it is cut; 0 cuts none.
func CutLine(line string, chars int) string {
	if chars == 0 || len(line) <= chars || utf8.RuneCountInString(line) <= chars {
		return line
	}
	return string([]rune(line)[:chars]) + frame.LineTruncated
}

// lineNumber matches the number before a line of a file in a view. Lines without one are Loci's own.
var lineNumber = regexp.MustCompile(`^\d+: `)

// CutNumbered returns a view of a file with its lines cut to some characters. Their numbers and Loci's own lines do not
// count.
func CutNumbered(view string, chars int) string {
	if chars == 0 || len(view) <= chars {
		return view
	}
	lines := strings.Split(view, "\n")
	for i, line := range lines {
		if number := lineNumber.FindString(line); number != "" {
			lines[i] = number + CutLine(line[len(number):], chars)
		}
	}
	return strings.Join(lines, "\n")
}

// Rest is what a read leaves to read: the lines that it shows, from 1, of how many, and the call that reads on.
type Rest struct {
	File               string
	First, Last, Lines int
	Call               string
}

// Sentence says how to read on, in the words that the policy prescribes.
func (b *ReadBounds) Sentence(r Rest) string {
	form := ""
	if b != nil && r.First <= r.Last {
		form = b.Continuation
	}
	switch form {
	case "pi":
		return fmt.Sprintf(frame.ShowingLines, r.File, r.First, r.Last, r.Lines,
			r.Last+1, r.Call)
	case "claude-code":
		return fmt.Sprintf(frame.MostLines, r.File, r.First, r.Last, r.Lines, r.Call)
	}
	return fmt.Sprintf("Note: The view of %s stops before line %d. To go on, call: %s", r.File, r.Last+1, r.Call)
}
