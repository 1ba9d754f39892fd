package grep

import (
	"fmt"
	"iter"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// MaxContextLines is how many lines may be shown before and after a matching line.
const MaxContextLines = 20

// maxLineBytes is how many bytes of one line are shown, so that a match in a file with a single line does not return
// the whole file.
const maxLineBytes = 2000

// Match is a matching line with the lines around it. A line of more than about 2,000 bytes is cut; the matching line is
// cut around its first match. The text says where and how many bytes are missing.
type Match struct {
	FileID, FileName string // FileName is folder/name
	Line             int    // from 1
	Text             string
	At               int      // byte in Text at which its first match begins
	Before           []string // the lines up to Line-1
	After            []string // the lines from Line+1 on
}

// CheckContext returns ErrInvalid if not so many lines may be shown around a match.
func CheckContext(lines int) error {
	if lines < 0 || lines > MaxContextLines {
		return db.Invalid("Invalid context_lines: %d. Ask for 0 to %d lines, and open the file to see more around a match.",
			lines, MaxContextLines)
	}
	return nil
}

// matchIn returns the first matching lines, at most limit, of consecutive segments of a file. It holds only one segment
// in memory at a time, or one line if that is longer.
func (p *Pattern) matchIn(segments iter.Seq2[Segment, error], limit int) ([]Match, error) {
	var found []Match
	for b, err := range wholeLines(segments) {
		if err != nil {
			return nil, err
		}
		p.Lines(b.text, func(line, start, end int) bool {
			text, at := p.cutAround(b.text[start:end])
			found = append(found, Match{Line: b.firstLine + line, Text: text, At: at})
			return len(found) < limit
		})
		if len(found) >= limit {
			break
		}
	}
	return found, nil
}

// linesAround returns up to n lines before and n lines after a line. The segments must contain these lines.
func linesAround(segments iter.Seq2[Segment, error], line, n int) (before, after []string, err error) {
	for b, err := range wholeLines(segments) {
		if err != nil {
			return nil, nil, err
		}
		number := b.firstLine
		for text := range strings.Lines(b.text) {
			switch text = strings.TrimSuffix(text, "\n"); {
			case line-n <= number && number < line:
				before = append(before, cutLine(text))
			case line < number && number <= line+n:
				after = append(after, cutLine(text))
			}
			number++
		}
	}
	return before, after, nil
}

// lines is a run of whole lines of a file. The file's last line may have no line end.
type lines struct {
	firstLine  int // from 1
	first, end int // ordinals of its segments, end excluded
	text       string
}

// wholeLines yields each segment as lines. It joins the segments of a long line.
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

// cutLine returns a line. Of a long line it returns the beginning and a note.
func cutLine(line string) string {
	if len(line) <= maxLineBytes {
		return strings.Clone(line)
	}
	end := runeBoundary(line, maxLineBytes)
	return line[:end] + fmt.Sprintf(frame.BytesCutAfter, len(line)-end)
}

// cutAround returns a matching line, and the byte in it at which its first match begins. Of a long line it returns the
// part around the match.
func (p *Pattern) cutAround(line string) (text string, at int) {
	first, end := p.first(line)
	if len(line) <= maxLineBytes {
		return strings.Clone(line), first
	}
	start := runeBoundary(line, max(0, min(first-max(0, maxLineBytes-(end-first))/2, len(line)-maxLineBytes)))
	head := ""
	if start > 0 {
		head = fmt.Sprintf(frame.BytesCutBefore, start)
	}
	return head + cutLine(line[start:]), len(head) + first - start
}

// first returns the place of the first match in a line that matches.
func (p *Pattern) first(line string) (start, end int) {
	if p.literal != "" {
		at := strings.Index(line, p.literal)
		return at, at + len(p.literal)
	}
	if place := p.match.FindStringIndex(line); place != nil {
		return place[0], place[1]
	}
	return 0, 0
}
