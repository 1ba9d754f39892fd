package recall

import (
	"regexp"
	"strings"
)

// A stray line end is a character other than LF at which a reader, a model among them, may see a new line begin.
var (
	strayEnd  = regexp.MustCompile(`[\r\v\f\x{85}\x{2028}\x{2029}]⏎*`)
	markedEnd = regexp.MustCompile(`([\r\v\f\x{85}\x{2028}\x{2029}])⏎`)
)

// MarkLineEnds returns a text with "⏎" after each stray line end, so that what follows cannot pass for a line of its
// own. UnmarkLineEnds undoes it.
func MarkLineEnds(text string) string { return strayEnd.ReplaceAllString(text, "${0}⏎") }

// UnmarkLineEnds returns the text that MarkLineEnds shows.
func UnmarkLineEnds(text string) string {
	if !strings.Contains(text, "⏎") {
		return text
	}
	return markedEnd.ReplaceAllString(text, "$1")
}

// indented returns a text of several lines with those after the first moved in, and with its stray line ends marked, so
// that none of it can pass for the first line of a message.
func indented(text string) string {
	return strings.ReplaceAll(MarkLineEnds(strings.TrimRight(text, "\n")), "\n", "\n  ")
}
