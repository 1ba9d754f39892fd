package frame

import (
	"regexp"
	"strconv"
	"strings"
)

// A stray line end is one of LineEnds.
var (
	strayEnd  = regexp.MustCompile(`[` + LineEnds + `]⏎*`)
	markedEnd = regexp.MustCompile(`([` + LineEnds + `])⏎`)
)

// MarkLineEnds returns the text with "⏎" behind each stray line end, so that the text behind it cannot pass for a line
// of its own. UnmarkLineEnds undoes it.
func MarkLineEnds(text string) string { return strayEnd.ReplaceAllString(text, "${0}⏎") }

// UnmarkLineEnds undoes MarkLineEnds.
func UnmarkLineEnds(text string) string {
	if !strings.Contains(text, "⏎") {
		return text
	}
	return markedEnd.ReplaceAllString(text, "$1")
}

// Occurrences returns the places at which a text stands in a value, as offsets of its beginning and its end. If the
// text is not found with its own line ends, it is searched with the value's: LF matches CRLF, and CRLF matches LF.
func Occurrences(value, text string) (places [][]int) {
	if text == "" {
		return nil
	}
	if strings.Contains(value, text) || !strings.Contains(text, "\n") {
		for from := 0; ; {
			i := strings.Index(value[from:], text)
			if i < 0 {
				return places
			}
			places = append(places, []int{from + i, from + i + len(text)})
			from += i + len(text)
		}
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = regexp.QuoteMeta(line)
	}
	return regexp.MustCompile(strings.Join(lines, `\r?\n`)).FindAllStringIndex(value, -1)
}

// EndedLike returns a text with the line ends of a value: CRLF if all lines of the value end so, LF if none does. In
// other values the text keeps its own.
func EndedLike(value, text string) string {
	crlf, all := strings.Count(value, "\r\n"), strings.Count(value, "\n")
	lf := strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case all == 0 || crlf > 0 && crlf < all:
		return text
	case crlf == 0:
		return lf
	}
	return strings.ReplaceAll(lf, "\n", "\r\n")
}

// LineEnd returns the end of the lines of a value: CRLF if all lines end so, and otherwise LF.
func LineEnd(value string) string {
	if n := strings.Count(value, "\n"); n > 0 && n == strings.Count(value, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// Joint returns the line end between a value and a text that is added to it: the value's, or the text's if the value
// has a single line.
func Joint(value, text string) string {
	if strings.Contains(value, "\n") {
		return LineEnd(value)
	}
	return LineEnd(text)
}

// Replaced returns a value in which these places have another text, with the line ends of the value. A place that
// begins within a CRLF begins before it, so that no CR is left over.
func Replaced(value string, places [][]int, text string) string {
	text = EndedLike(value, text)
	crlf := LineEnd(value) == "\r\n"
	var b strings.Builder
	from := 0
	for _, p := range places {
		begin, put := p[0], text
		if crlf && value[begin] == '\n' {
			if begin--; begin < from { // the place before has the CR
				begin, put = from, strings.TrimPrefix(text, "\r")
			}
		}
		b.WriteString(value[from:begin] + put)
		from = p[1]
	}
	return b.String() + value[from:]
}

// maxLinesAt bounds the lines that LinesAt lists.
const maxLinesAt = 20

// LinesAt lists the numbers, from 1, of the lines in which places begin, such as "[3, 9]".
func LinesAt(value string, places [][]int) string {
	var lines []string
	from, line := 0, 1
	for _, p := range places[:min(len(places), maxLinesAt)] {
		line += strings.Count(value[from:p[0]], "\n")
		lines, from = append(lines, strconv.Itoa(line)), p[0]
	}
	if len(places) > maxLinesAt {
		lines = append(lines, "…")
	}
	return "[" + strings.Join(lines, ", ") + "]"
}
