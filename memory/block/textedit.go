package block

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Append returns the value with content added on a new line.
func Append(value, content string) string {
	if value == "" {
		return content
	}
	return value + "\n" + content
}

// ReplaceAll returns the value with every occurrence of old replaced. ErrInvalid if there is none.
func ReplaceAll(label, value, old, text string) (string, error) {
	if old == "" || !strings.Contains(value, old) {
		return "", db.Invalid("Old content '%s' not found in memory block '%s'. Nothing was changed; the text must be "+
			"exactly that of the block.", old, label)
	}
	return strings.ReplaceAll(value, old, text), nil
}

// ReplaceOnce returns the value with the single occurrence of old replaced. ErrInvalid if there is none, or more than
// one.
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
	return "", db.Invalid("No replacement was performed. Multiple occurrences of old_string `%s` in lines %v. Please "+
		"ensure it is unique.", old, linesOf(value, old))
}

// linesOf returns the numbers, from 1, of the lines in which occurrences of a text begin.
func linesOf(value, text string) (lines []int) {
	for from, line := 0, 1; ; {
		offset := strings.Index(value[from:], text)
		if offset < 0 {
			return lines
		}
		line += strings.Count(value[from:from+offset], "\n")
		lines = append(lines, line)
		line += strings.Count(text, "\n")
		from += offset + len(text)
	}
}

// AtEnd makes Insert insert after the last line.
const AtEnd = -1

// Insert returns the value with a text inserted, as lines of its own, after the given line. Line 0 is before the first
// line, AtEnd is after the last. ErrInvalid if there is no such line.
func Insert(value, text string, line int) (string, error) {
	lines := split(value)
	if line == AtEnd {
		line = len(lines)
	}
	if line < 0 || line > len(lines) {
		return "", db.Invalid("Invalid `insert_line` parameter: %d. It should be within the range of lines of the memory "+
			"block: [0, %d], or -1 to insert at the end.", line, len(lines))
	}
	return strings.Join(slices.Insert(lines, line, text), "\n"), nil
}

// split returns the lines of a value. An empty value has no lines.
func split(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, "\n")
}
