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

// CheckContext tells whether so many lines may be shown around a match; ErrInvalid says how many may.
func CheckContext(lines int) error {
	if lines < 0 || lines > MaxContextLines {
		return db.Invalid("Invalid context_lines: %d. Ask for 0 to %d lines, and open the file to see more around a match.", lines, MaxContextLines)
	}
	return nil
}

// matchIn finds the lines that match in a file, or in a part of it, given as its segments in order; most of them at most, and then it
// stops reading. It holds one segment at a time, or one line where that is longer.
func (p *Pattern) matchIn(segments iter.Seq2[Segment, error], most int) ([]Match, error) {
	var found []Match
	for b, err := range blocks(segments) {
		if err != nil {
			return nil, err
		}
		p.Lines(b.text, func(line, start, end int) bool {
			found = append(found, Match{Line: b.firstLine + line, Text: p.cutAround(b.text[start:end])})
			return len(found) < most
		})
		if len(found) >= most {
			break
		}
	}
	return found, nil
}

// linesAround are up to n lines before and after one. The segments are those of a file that these lines are in, at least.
func linesAround(segments iter.Seq2[Segment, error], line, n int) (before, after []string, err error) {
	for b, err := range blocks(segments) {
		if err != nil {
			return nil, nil, err
		}
		at := b.firstLine
		for text := range strings.Lines(b.text) {
			switch {
			case line-n <= at && at < line:
				before = append(before, cutLine(strings.TrimSuffix(text, "\n")))
			case line < at && at <= line+n:
				after = append(after, cutLine(strings.TrimSuffix(text, "\n")))
			}
			at++
		}
	}
	return before, after, nil
}

// block is whole lines of a file, the last of the file perhaps without its end.
type block struct {
	firstLine  int // 1-based
	first, end int // the ordinals of its segments, end not among them
	text       string
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
				b = block{firstLine: s.FirstLine, first: s.Ordinal}
			}
			b.end = s.Ordinal + 1
			if long.Len() == 0 && strings.HasSuffix(s.Text, "\n") {
				b.text = s.Text
				if !yield(b, nil) {
					return
				}
				continue
			}
			long.WriteString(s.Text)
		}
		flush()
	}
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
func (p *Pattern) cutAround(line string) string {
	if len(line) <= lineBytes {
		return strings.Clone(line)
	}
	at, end := p.first(line)
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
