package frame

import (
	"regexp"
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
