package block

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// Append returns the value with content added on a new line, without an empty line between them. Its lines end like
// those of the value.
func Append(value, content string) string {
	if value == "" {
		return content
	}
	if strings.HasSuffix(value, "\n") {
		return value + frame.EndedLike(value, content)
	}
	return value + frame.Joint(value, content) + frame.EndedLike(value, content)
}

// ReplaceAll returns the value with every occurrence of old replaced. Line ends of old match those of the value, which
// the new text gets too. ErrInvalid if there is no occurrence.
func ReplaceAll(label, value, old, text string) (string, error) {
	places := frame.Occurrences(value, old)
	if len(places) == 0 {
		return "", db.Invalid("Old content '%s' not found in memory block '%s'. Nothing was changed; the text must be "+
			"exactly that of the block.", db.Short(old), label)
	}
	return frame.Replaced(value, places, text), nil
}

// ReplaceOnce returns the value with the single occurrence of old replaced. Line ends of old match those of the value,
// which the new text gets too. ErrInvalid if there is no occurrence, or more than one.
func ReplaceOnce(label, value, old, text string) (string, error) {
	if old == "" {
		return "", db.Invalid("No replacement was performed, old_string is empty. To add text to memory block `%s`, "+
			"insert it.", label)
	}
	places := frame.Occurrences(value, old)
	switch len(places) {
	case 1:
		return frame.Replaced(value, places, text), nil
	case 0:
		return "", db.Invalid("No replacement was performed, old_string `%s` did not appear verbatim in memory block with "+
			"label `%s`. Copy the text exactly as the block has it.", db.Short(old), label)
	}
	return "", db.Invalid("No replacement was performed. Multiple occurrences of old_string `%s` in lines %s. Please "+
		"ensure it is unique: give more of the text around it.", db.Short(old), frame.LinesAt(value, places))
}

// AtEnd makes Insert insert after the last line.
const AtEnd = -1

// Insert returns the value with a text inserted, as lines of its own, after the given line. Line 0 is before the first
// line, AtEnd is after the last. A line end at the end of the text or of the value does not make an empty line. The
// lines end like those of the value. ErrInvalid if there is no such line.
func Insert(value, text string, line int) (string, error) {
	edit := func(value, text string) (string, error) { return insert(value, text, line) }
	text = frame.EndedLike(value, text)
	if frame.Joint(value, text) == "\r\n" {
		return inLineFeeds(value, text, edit)
	}
	return edit(value, text)
}

// withLineFeeds edits a value that has CRLF at the end of each line with a text, both with LF, and puts CRLF back. It
// edits other values as they are.
func withLineFeeds(value, text string, edit func(value, text string) (string, error)) (string, error) {
	if frame.LineEnd(value) != "\r\n" {
		return edit(value, text)
	}
	return inLineFeeds(value, text, edit)
}

func inLineFeeds(value, text string, edit func(value, text string) (string, error)) (string, error) {
	edited, err := edit(strings.ReplaceAll(value, "\r\n", "\n"), strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.ReplaceAll(edited, "\n", "\r\n"), err
}

func insert(value, text string, line int) (string, error) {
	lines := split(value)
	text = strings.TrimSuffix(text, "\n")
	if line < AtEnd || line > len(lines) {
		return "", db.Invalid("Invalid `insert_line` parameter: %d. It should be within the range of lines of the memory "+
			"block: [0, %d], or -1 to insert at the end.", line, len(lines))
	}
	if line == AtEnd {
		if line = len(lines); strings.HasSuffix(value, "\n") {
			line--
		}
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
