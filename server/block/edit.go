package block

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Append adds a text to the end of a value, on a line of its own.
func Append(value, content string) string {
	if value == "" {
		return content
	}
	return value + "\n" + content
}

// ReplaceAll puts a text in the place of another, wherever the value has it. ErrInvalid if it has not.
func ReplaceAll(label, value, old, text string) (string, error) {
	if old == "" || !strings.Contains(value, old) {
		return "", db.Invalid("Old content '%s' not found in memory block '%s'. Nothing was changed; the text must be as "+
			"it stands in the block.", old, label)
	}
	return strings.ReplaceAll(value, old, text), nil
}

// ReplaceOnce puts a text in the place of another, which the value must have once. ErrInvalid if it has not, or has
// it several times.
func ReplaceOnce(label, value, old, text string) (string, error) {
	switch strings.Count(value, old) {
	case 1:
		return strings.Replace(value, old, text, 1), nil
	case 0:
		return "", db.Invalid("No replacement was performed, old_string `%s` did not appear verbatim in memory block with "+
			"label `%s`.", old, label)
	}
	if old == "" {
		return "", db.Invalid("No replacement was performed, old_string is empty. To add text to memory block `%s`, "+
			"insert it.", label)
	}
	return "", db.Invalid("No replacement was performed. Multiple occurrences of old_string `%s` in lines %s. Please "+
		"ensure it is unique.",
		old, fmt.Sprint(linesOf(value, old)))
}

// linesOf are the lines, from 1, in which occurrences of a text begin.
func linesOf(value, text string) (lines []int) {
	for from, line := 0, 1; ; {
		at := strings.Index(value[from:], text)
		if at < 0 {
			return lines
		}
		line += strings.Count(value[from:from+at], "\n")
		lines = append(lines, line)
		line += strings.Count(text, "\n")
		from += at + len(text)
	}
}

// AtEnd is the line of an insertion at the end.
const AtEnd = -1

// Insert puts a text, as lines of its own, after a line of a value: 0 is before the first, AtEnd after the last.
// ErrInvalid if there is no such line.
func Insert(value, text string, line int) (string, error) {
	lines := split(value)
	if line == AtEnd {
		line = len(lines)
	}
	if line < 0 || line > len(lines) {
		return "", db.Invalid("Invalid `insert_line` parameter: %d. It should be within the range of lines of the memory "+
			"block: [0, %d], or -1 "+
			"to insert at the end.", line, len(lines))
	}
	return strings.Join(append(append(append([]string{}, lines[:line]...), text), lines[line:]...), "\n"), nil
}

// split returns the lines of a value; an empty one has none.
func split(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, "\n")
}
