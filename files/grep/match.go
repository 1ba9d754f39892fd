package grep

import (
	"fmt"
	"iter"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// MaxContextLines is the most lines shown before and after a matching one.
const MaxContextLines = 20

// maxLineBytes is the most shown of one line: a match in a file of one line must not return the whole file.
const maxLineBytes = 2000

// Match is a matching line with the lines around it. A line of more than about 2,000 bytes is cut, the matching one
// around its first match; the text says where and how many bytes are missing.
type Match struct {
	FileID, FileName string // the name is folder/name
	Line             int    // 1-based
	Text             string
	Before           []string // the lines up to Line-1
	After            []string // the lines from Line+1
}

// CheckContext returns ErrInvalid unless that many lines may be shown around a match.
func CheckContext(lines int) error {
	if lines < 0 || lines > MaxContextLines {
		return db.Invalid("Invalid context_lines: %d. Ask for 0 to %d lines, and open the file to see more around a match.",
			lines, MaxContextLines)
	}
	return nil
}

// matchIn returns the first matching lines, at most limit, of consecutive segments of a file. It holds one segment in
// memory at a time, or one line where that is longer.
func (p *Pattern) matchIn(segments iter.Seq2[Segment, error], limit int) ([]Match, error) {
	var found []Match
	for b, err := range wholeLines(segments) {
		if err != nil {
			return nil, err
		}
		p.Lines(b.text, func(line, start, end int) bool {
			found = append(found, Match{Line: b.firstLine + line, Text: p.cutAround(b.text[start:end])})
			return len(found) < limit
		})
		if len(found) >= limit {
			break
		}
	}
	return found, nil
}

// linesAround returns up to n lines before and n after a line. The segments must hold at least those lines.
func linesAround(segments iter.Seq2[Segment, error], line, n int) (before, after []string, err error) {
	for b, err := range wholeLines(segments) {
		if err != nil {
			return nil, nil, err
		}
		at := b.firstLine
		for text := range strings.Lines(b.text) {
			switch text = strings.TrimSuffix(text, "\n"); {
			case line-n <= at && at < line:
				before = append(before, cutLine(text))
			case line < at && at <= line+n:
				after = append(after, cutLine(text))
			}
			at++
		}
	}
	return before, after, nil
}

// lines is a run of whole lines of a file. The last line of the file may have no end.
type lines struct {
	firstLine  int // 1-based
	first, end int // the ordinals of its segments, end excluded
	text       string
}

// wholeLines yields each segment as lines, and joins the segments of a long line.
func wholeLines(segments iter.Seq2[Segment, error]) iter.Seq2[lines, error] {
	return func(yield func(lines, error) bool) {
		var b lines
		var long strings.Builder
		flush := func() bool {
			b.text = long.String()
			long.Reset()
			return b.text == "" || yield(b, nil)
		}
		for s, err := range segments {
			if err != nil {
				yield(lines{}, err)
				return
			}
			if !s.Continues && !flush() {
				return
			}
			if long.Len() == 0 {
				b = lines{firstLine: s.FirstLine, first: s.Ordinal}
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

// cutLine returns a line, or the beginning of a long one with a note.
func cutLine(line string) string {
	if len(line) <= maxLineBytes {
		return strings.Clone(line)
	}
	end := runeBoundary(line, maxLineBytes)
	return line[:end] + fmt.Sprintf(frame.BytesCutAfter, len(line)-end)
}

// cutAround returns a matching line, or the part of a long one around its first match.
func (p *Pattern) cutAround(line string) string {
	if len(line) <= maxLineBytes {
		return strings.Clone(line)
	}
	at, end := p.first(line)
	start := runeBoundary(line, max(0, min(at-max(0, maxLineBytes-(end-at))/2, len(line)-maxLineBytes)))
	head := ""
	if start > 0 {
		head = fmt.Sprintf(frame.BytesCutBefore, start)
	}
	return head + cutLine(line[start:])
}

// first returns the place of the first match in a line that matches.
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
