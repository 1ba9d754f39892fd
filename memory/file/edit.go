package file

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// ReplaceOnce returns the text of a file with the single occurrence of old replaced. Line ends of old match those of
// the file, which the new text gets too. ErrInvalid if old does not occur, or occurs more than once.
func ReplaceOnce(path, content, old, text string) (string, error) {
	places := frame.Occurrences(content, old)
	switch {
	case old == "":
		return "", db.Invalid("old_str is empty; nothing was changed. Give the text to replace, or insert the new one")
	case len(places) == 0:
		return "", db.Invalid("old_str does not occur verbatim in %s; nothing was changed. View the file, and copy the text "+
			"from it", path)
	case len(places) > 1:
		return "", db.Invalid("old_str occurs %d times in %s, from the lines %s on; nothing was changed. Give more of the "+
			"text around it, so that it occurs once", len(places), path, frame.LinesAt(content, places))
	}
	return frame.Replaced(content, places, text), nil
}

// Lines returns the lines of a text. A line feed at the end does not begin another line. An empty text has no lines.
func Lines(content string) []string {
	if content == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(content, "\n"), "\n")
}

// AtEnd makes Insert insert after the last line.
const AtEnd = -1

// Insert returns the text of a file with a text inserted, as lines of its own, after the given line. Line 0 is before
// the first line, AtEnd is after the last; an empty text inserts an empty line. The lines end like those of the file.
// ErrInvalid if there is no such line.
func Insert(path, content, text string, line int) (string, error) {
	if frame.Joint(content, text) == "\r\n" {
		edited, err := Insert(path, strings.ReplaceAll(content, "\r\n", "\n"), strings.ReplaceAll(text, "\r\n", "\n"), line)
		return strings.ReplaceAll(edited, "\n", "\r\n"), err
	}
	lines, text := Lines(content), frame.EndedLike(content, text)
	if line == AtEnd {
		line = len(lines)
	}
	if line < 0 || line > len(lines) {
		return "", db.Invalid("insert_line is %d; %s has %d lines, so that it must be from 0 to %d. Nothing was changed",
			line, path, len(lines), len(lines))
	}
	ended := strings.HasSuffix(content, "\n") || line == len(lines) && (text == "" || strings.HasSuffix(text, "\n"))
	edited := strings.Join(slices.Insert(lines, line, strings.TrimSuffix(text, "\n")), "\n")
	if ended {
		edited += "\n"
	}
	return edited, nil
}
