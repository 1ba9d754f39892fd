package policy

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// ReadBounds bounds how much of files Loci's tools open_files and grep_files return. The tools apply its numbers
// themselves; the step replaces a repeated read by a pointer to the older one.
type ReadBounds struct {
	MaxLines      int    `json:"max_lines" min:"1" max:"10000000"`
	MaxBytes      int    `json:"max_bytes" min:"100" max:"10000000"`
	MaxTokens     int    `json:"max_tokens" min:"0" max:"10000000" doc:"Of it, in the model's count. 0: no bound."`
	MaxLineChars  int    `json:"max_line_chars" min:"0" max:"1000000"`
	MaxMatchChars int    `json:"max_match_chars" min:"0" max:"1000000"`
	UnchangedStub bool   `json:"unchanged_stub"`
	OnExceed      string `json:"on_exceed" oneof:"shorten,refuse"`
	Continuation  string `json:"continuation" oneof:"call,pi,claude-code"`

	count func(text string) int // nil: tokens are estimated
}

func (*ReadBounds) describe() Mechanism {
	return Mechanism{Name: "read_bounds", Stage: Enter, Source: "Pi, Claude Code",
		Words: "Bounds what the tools open_files (with include_content) and grep_files show at once: whole lines, and a " +
			"sentence that says how to read on. Results of other tools stay as they are. Less is shown where " +
			"it would take more " +
			"than a quarter of the window, at four characters per token, or 200,000 characters; of matches, 50,000.",
		Settings: map[string]string{
			"max_lines":       "Lines of a file, or of a page of matches, that one call shows.",
			"max_bytes":       "Bytes of a file, or of a page of matches, that one call shows.",
			"max_line_chars":  "Longer lines of files are cut: their text, beside the line number. 0: no bound.",
			"max_match_chars": "So are longer lines among matches, around the match. 0: no bound.",
			"unchanged_stub": "Whether a read that repeats an older one, and shows the same text, is shown as a line that " +
				"leads to it, as long as the older one is shown whole.",
			"on_exceed": "What happens to a read above max_bytes or max_tokens: it is shortened, or refused before the file " +
				"opens, with the ranges and the search that fit. Matches are always shortened, and so is a read of one line.",
			"continuation": "The sentence that says how to read on: as each harness words it, or the call alone.",
		},
		New: func() Step {
			return &ReadBounds{MaxLines: 2_000, MaxBytes: 50 << 10, MaxMatchChars: 500, OnExceed: Shorten,
				Continuation: "call"}
		}}
}

// What ReadBounds do with a read that is too large.
const (
	Shorten = "shorten"
	Refuse  = "refuse"
)

// Refuses reports whether reads above the bounds are refused.
func (b *ReadBounds) Refuses() bool { return b != nil && b.OnExceed == Refuse }

// Exceeds reports whether the view of a file has more bytes or tokens than one call may show, however many lines it
// has.
func (b *ReadBounds) Exceeds(text string) bool {
	return b.bytes(text) > b.MaxBytes || !b.fitsTokens(text)
}

// bytes returns the bytes of a view. If that matters, those of line numbers do not count.
func (b *ReadBounds) bytes(text string) int {
	if len(text) <= b.MaxBytes {
		return len(text)
	}
	return len(text) - numberBytes(text)
}

// readTools are the tools that apply the bounds.
var readTools = []string{"open_files", "grep_files"}

// Edits replaces repeated reads by pointers to the first.
func (b *ReadBounds) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	if !b.UnchangedStub {
		return nil
	}
	first := map[string]result{}
	for r := range results(v) {
		if r.edit != nil || r.call == nil || r.failed() || !selects(readTools, nil, r.tool()) {
			continue
		}
		read := r.call.Name + "\x00" + sameText(r.p) // the text names the file and its lines
		earlier, ok := first[read]
		if !ok {
			first[read] = r
			continue
		}
		if earlier.m.Seq != r.m.Seq {
			e := r.clip("read_bounds", 0)
			e.Kind, e.CopySeq = clip.Pointer, earlier.m.Seq
			edits = append(edits, e)
		}
	}
	return edits
}

// ReadBounds returns the policy's step that bounds reads of files; nil if there is none.
func (p Policy) ReadBounds() *ReadBounds {
	for _, s := range p.Steps {
		if b, ok := s.(*ReadBounds); ok {
			return b
		}
	}
	return nil
}

// Fits reports whether a text is within the bounds of one call. A nil ReadBounds has no bounds.
func (b *ReadBounds) Fits(text string) bool {
	if b == nil {
		return true
	}
	return strings.Count(text, "\n") < b.MaxLines && b.bytes(text) <= b.MaxBytes && b.fitsTokens(text)
}

// CountedBy returns the bounds with another count of tokens. Without one, tokens are estimated.
func (b *ReadBounds) CountedBy(count func(text string) int) *ReadBounds {
	if b == nil {
		return nil
	}
	counted := *b
	counted.count = count
	return &counted
}

func (b *ReadBounds) fitsTokens(text string) bool {
	count := b.count
	if count == nil {
		count = tokens.Estimate
	}
	return b.MaxTokens == 0 || len(text) <= b.MaxTokens || count(text) <= b.MaxTokens
}

// Lines returns as many whole lines from the beginning of a text as fit the bounds; empty if the first line does not
// fit.
func (b *ReadBounds) Lines(text string) string {
	if b.Fits(text) {
		return text
	}
	ends := []int{0} // byte offsets of line ends, without line feeds
	numbers, begin := 0, 0
	for i := range len(text) + 1 {
		if i == len(text) || text[i] == '\n' {
			numbers += len(lineNumber.FindString(text[begin:i]))
			if begin = i + 1; len(ends) > b.MaxLines || i-numbers > b.MaxBytes {
				break
			}
			ends = append(ends, i)
		}
	}
	low, high := 0, len(ends)-1
	for low < high { // finds the most lines with tokens that fit
		middle := (low + high + 1) / 2
		if b.fitsTokens(text[:ends[middle]]) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return text[:ends[low]]
}

// Part returns the beginning of a numbered line that is above the bounds: as much of its text as fits them.
func (b *ReadBounds) Part(line string) string {
	number := lineNumber.FindString(line)
	text := db.Beginning(line[len(number):], b.MaxBytes)
	low, high := 0, len(text)
	for low < high && !b.fitsTokens(text[:high]) {
		middle := (low + high + 1) / 2
		if b.fitsTokens(text[:middle]) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return number + db.Beginning(text, high)
}

// CutLine cuts a line of a file to chars characters and marks it as cut; chars 0 cuts nothing.
func CutLine(line string, chars int) string {
	if chars == 0 || len(line) <= chars || utf8.RuneCountInString(line) <= chars {
		return line
	}
	return string([]rune(line)[:chars]) + frame.LineTruncated
}

// CutAround is CutLine for a line with a match at byte at: if the beginning does not show the match, it shows the part
// around it.
func CutAround(line string, at, chars int) string {
	before := utf8.RuneCountInString(line[:min(max(at, 0), len(line))])
	if chars == 0 || before < chars-chars/4 {
		return CutLine(line, chars)
	}
	runes := []rune(line)
	from := max(min(before-chars/4, len(runes)-chars), 0)
	if from == 0 {
		return CutLine(line, chars)
	}
	return "…" + CutLine(string(runes[from:]), chars)
}

// numberBytes returns the bytes of the line numbers in the view of a file. They do not count: a bound is on the file's
// text.
func numberBytes(view string) (n int) {
	for line := range strings.SplitSeq(view, "\n") {
		n += len(lineNumber.FindString(line))
	}
	return n
}

// lineNumber matches the number before a line in the view of a file. Lines without a number are Loci's own.
var lineNumber = regexp.MustCompile(`^\d+: `)

// CutNumbered cuts the lines in the view of a file to chars characters. Line numbers do not count, and Loci's own lines
// are not cut.
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

// Rest says what a read leaves unread: the lines that it shows (from 1), or how much of one line; how many lines there
// are; and the call that reads on.
type Rest struct {
	File               string
	First, Last, Lines int
	Char               int // characters of line First, the only one, that it shows; 0: all
	Call               string
}

// Sentence says how to read on, in the words that the policy's setting chooses.
func (b *ReadBounds) Sentence(r Rest) string {
	form := ""
	if b != nil && r.First <= r.Last {
		form = b.Continuation
	}
	if r.Char > 0 {
		return r.withinLine(form)
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

// withinLine says how to go on in a line that a read shows in part.
func (r Rest) withinLine(form string) string {
	switch form {
	case "pi":
		return fmt.Sprintf(frame.ShowingPart, r.File, r.Char, r.First, r.Lines, r.First, r.Char, r.Call)
	case "claude-code":
		return fmt.Sprintf(frame.MostOfLine, r.File, r.Char, r.First, r.Lines, r.Call)
	}
	return fmt.Sprintf("Note: The view of %s stops within line %d, behind %d characters. To go on, call: %s", r.File,
		r.First, r.Char, r.Call)
}
