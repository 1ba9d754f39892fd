package tool

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds on the lines that a result shows of a change.
const (
	aroundChange    = 1   // lines before and after those that changed
	maxChangedLines = 8   // lines that changed
	maxChangeChars  = 160 // of a line
)

// changedLines returns the end of a sentence about a change of a text: the lines around what changed, with their
// numbers. Of a long change it shows the beginning and the end.
func changedLines(before, after []string) string {
	if len(after) == 0 || slices.Equal(before, after) {
		return "."
	}
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	last := len(after) // the number of the last line that changed
	for i := 1; i <= min(len(before), len(after))-same && before[len(before)-i] == after[len(after)-i]; i++ {
		last = len(after) - i
	}
	var b strings.Builder
	b.WriteString("; around the change it reads:\n")
	for n := max(same+1-aroundChange, 1); n <= min(last+aroundChange, len(after)); n++ {
		if half := maxChangedLines / 2; last-same > maxChangedLines && n > same+half && n <= last-half {
			fmt.Fprintf(&b, "     …\t(%d lines)\n", last-same-maxChangedLines)
			n = last - half
			continue
		}
		old := ""
		if n-1 < len(before) {
			old = before[n-1]
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, aroundDifference(old, after[n-1]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// aroundDifference returns a line, of a long one only what is around its first difference to another.
func aroundDifference(before, after string) string {
	if utf8.RuneCountInString(after) <= maxChangeChars {
		return line(after)
	}
	was, runes := []rune(before), []rune(after)
	same := 0
	for same < min(len(was), len(runes)) && was[same] == runes[same] {
		same++
	}
	if same == len(runes) {
		same = 0
	}
	from := max(min(same-maxChangeChars/3, len(runes)-maxChangeChars), 0)
	to := min(from+maxChangeChars, len(runes))
	shown := line(string(runes[from:to]))
	if from > 0 {
		shown = "… " + shown
	}
	if to < len(runes) {
		shown += " …"
	}
	return shown
}
