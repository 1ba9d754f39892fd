package files

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// MaxContextLines is the most lines shown before and after a matching one.
const MaxContextLines = 20

// lineBytes is the most shown of one line, so that a match in a file of one line does not bring the file.
const lineBytes = 2000

// Match is a matching line and those around it. A line of more than about 2,000 bytes is cut, the matching one around its match, and
// says where and by how many bytes.
type Match struct {
	Line   int // 1-based
	Text   string
	Before []string // the lines up to Line-1
	After  []string // the lines from Line+1
}

// FileMatches is what a search found in one file.
type FileMatches struct {
	Total   int     // matching lines, at most Cap
	More    bool    // there are more than Cap
	Matches []Match // the page of them that was asked for
}

// MatchRange says which matching lines of a file are wanted: Take of them, after Skip, each with Context lines before and after it.
// Counting ends at Cap.
type MatchRange struct{ Context, Skip, Take, Cap int }

// CheckContext tells whether so many lines may be shown around a match; ErrInvalid says how many may.
func CheckContext(lines int) error {
	if lines < 0 || lines > MaxContextLines {
		return db.Invalid("Invalid context_lines: %d. Ask for 0 to %d lines, and open the file to see more around a match.", lines, MaxContextLines)
	}
	return nil
}

// File searches one file, given as its segments in order, and stops reading as soon as it knows what was asked for. It holds one segment
// at a time, or one line where that is longer. Errors are those of the segments, and ErrInvalid for a Context that is not allowed.
func (p *Pattern) File(segments iter.Seq2[Segment, error], want MatchRange) (FileMatches, error) {
	if err := CheckContext(want.Context); err != nil {
		return FileMatches{}, err
	}
	search := fileSearch{pattern: p, want: want}
	for block, err := range blocks(segments) {
		if err != nil {
			return FileMatches{}, err
		}
		if search.block(block); search.done() {
			break
		}
	}
	return search.found, nil
}

// block is whole lines of a file, the last of the file perhaps without its end.
type block struct {
	firstLine int // 1-based
	text      string
}

// blocks joins the segments of a long line into one block; every other segment is a block.
func blocks(segments iter.Seq2[Segment, error]) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		var b block
		var long strings.Builder
		flush := func() bool {
			b.text = long.String()
			long.Reset()
			return b.text == "" || yield(b, nil)
		}
		for s, err := range segments {
			if err != nil {
				yield(block{}, err)
				return
			}
			if !s.Continues && !flush() {
				return
			}
			if long.Len() == 0 {
				b.firstLine = s.FirstLine
			}
			if long.Len() == 0 && strings.HasSuffix(s.Text, "\n") {
				if !yield(block{s.FirstLine, s.Text}, nil) {
					return
				}
				continue
			}
			long.WriteString(s.Text)
		}
		flush()
	}
}

// fileSearch goes through a file block by block.
type fileSearch struct {
	pattern *Pattern
	want    MatchRange
	found   FileMatches
	open    []int    // matches, by place in found, that lack lines after them
	before  []string // the last lines before the block, at most Context
}

func (f *fileSearch) done() bool {
	return f.found.More && len(f.open) == 0
}

func (f *fileSearch) block(b block) {
	f.fillAfter(b.text)
	if !f.found.More {
		f.pattern.Lines(b.text, func(line, start, end int) bool {
			if f.found.Total >= f.want.Cap {
				f.found.More = true
				return false
			}
			if n := f.found.Total - f.want.Skip; n >= 0 && n < f.want.Take {
				f.take(b, line, start, end)
			}
			f.found.Total++
			return true
		})
	}
	f.before = f.linesBefore(b.text, len(b.text))
}

// take adds a matching line of the page, with what the block holds of the lines around it.
func (f *fileSearch) take(b block, line, start, end int) {
	m := Match{Line: b.firstLine + line, Text: f.cutAround(b.text[start:end]), Before: f.linesBefore(b.text, start)}
	m.After = appendLines(nil, b.text[min(end+1, len(b.text)):], f.want.Context)
	if len(m.After) < f.want.Context {
		f.open = append(f.open, len(f.found.Matches))
	}
	f.found.Matches = append(f.found.Matches, m)
}

// fillAfter gives the lines at the beginning of a block to the matches that lack some.
func (f *fileSearch) fillAfter(text string) {
	var still []int
	for _, i := range f.open {
		m := &f.found.Matches[i]
		if m.After = appendLines(m.After, text, f.want.Context); len(m.After) < f.want.Context {
			still = append(still, i)
		}
	}
	f.open = still
}

// linesBefore are the last Context lines before text[:end], those of earlier blocks included. text[:end] is whole lines.
func (f *fileSearch) linesBefore(text string, end int) []string {
	lines := make([]string, 0, f.want.Context)
	for end > 0 && len(lines) < f.want.Context {
		start := strings.LastIndexByte(text[:max(end-1, 0)], '\n') + 1
		lines = append(lines, cutLine(strings.TrimSuffix(text[start:end], "\n")))
		end = start
	}
	for i := len(f.before) - 1; i >= 0 && len(lines) < f.want.Context; i-- {
		lines = append(lines, f.before[i])
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}

// appendLines appends lines from the beginning of text until there are n.
func appendLines(lines []string, text string, n int) []string {
	for text != "" && len(lines) < n {
		line, rest, _ := strings.Cut(text, "\n")
		lines = append(lines, cutLine(line))
		text = rest
	}
	return lines
}

// cutLine is the beginning of a line as it is shown.
func cutLine(line string) string {
	if len(line) <= lineBytes {
		return strings.Clone(line)
	}
	end := len(runeStart(line, lineBytes))
	return fmt.Sprintf("%s...[%d bytes cut]", line[:end], len(line)-end)
}

// cutAround is a matching line as it is shown: where it is long, what is around its first match.
func (f *fileSearch) cutAround(line string) string {
	if len(line) <= lineBytes {
		return strings.Clone(line)
	}
	at, end := f.pattern.first(line)
	start := len(runeStart(line, max(0, min(at-max(0, lineBytes-(end-at))/2, len(line)-lineBytes))))
	head := ""
	if start > 0 {
		head = fmt.Sprintf("[%d bytes cut]...", start)
	}
	return head + cutLine(line[start:])
}

// first is the place of the pattern's first match in a line that matches.
func (p *Pattern) first(line string) (start, end int) {
	if p.literal != "" {
		at := strings.Index(line, p.literal)
		return at, at + len(p.literal)
	}
	if at := p.match.FindStringIndex(line); at != nil {
		return at[0], at[1]
	}
	return 0, 0
}

// runeStart is the first n bytes of s, without a character that they cut.
func runeStart(s string, n int) string {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
