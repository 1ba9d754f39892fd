package files

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// SegmentBytes is the most that one segment of a text holds.
const SegmentBytes = 64 << 10

// Segment is a stretch of a text: whole lines, or a part of one line that is longer than SegmentBytes. The segments of a text, one after
// the other, are the text.
type Segment struct {
	Ordinal   int    // 0-based place among the text's segments
	FirstLine int    // 1-based line on which it starts
	Lines     int    // line ends in it, and 1 for the last line of the text if that has none
	StartByte int    // 0-based place in the text
	Continues bool   // starts within a line that began in the segment before
	Text      string // cut between characters
}

// Segments parts a text. An empty text has none.
func Segments(text string) iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		s := Segment{FirstLine: 1}
		for s.StartByte < len(text) {
			rest := text[s.StartByte:]
			s.Text = rest[:segmentEnd(rest, s.Continues)]
			s.Lines = strings.Count(s.Text, "\n")
			whole := strings.HasSuffix(s.Text, "\n")
			if !whole && len(s.Text) == len(rest) {
				s.Lines++
			}
			if !yield(s) {
				return
			}
			s = Segment{Ordinal: s.Ordinal + 1, FirstLine: s.FirstLine + s.Lines, StartByte: s.StartByte + len(s.Text), Continues: !whole}
		}
	}
}

// segmentEnd is the length of the first segment of rest: as many whole lines as fit, or what is left of the line that is being parted,
// or as much of one line as fits.
func segmentEnd(rest string, continues bool) int {
	head := rest[:min(len(rest), SegmentBytes)]
	if continues {
		if end := strings.IndexByte(head, '\n'); end >= 0 {
			return end + 1
		}
	} else if len(head) == len(rest) {
		return len(rest)
	} else if end := strings.LastIndexByte(head, '\n'); end >= 0 {
		return end + 1
	}
	if len(head) == len(rest) {
		return len(rest)
	}
	return runeCut(head, rest)
}

// runeCut is the length of head, the beginning of rest, without the character that it cuts.
func runeCut(head, rest string) int {
	for n := len(head); n > len(head)-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(rest[n]) {
			return n
		}
	}
	return len(head)
}
