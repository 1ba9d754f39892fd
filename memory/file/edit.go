package file

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// ReplaceOnce returns the text of a file with the single occurrence of old replaced. If the file's lines end in CRLF,
// those of old may end in LF. ErrInvalid if old does not occur, or occurs more than once.
func ReplaceOnce(path, content, old, text string) (string, error) {
	if !strings.Contains(content, old) && !strings.Contains(old, "\r\n") && strings.Contains(content, "\r\n") {
		old, text = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r\n")
	}
	switch n := strings.Count(content, old); {
	case old == "":
		return "", db.Invalid("old_str is empty; nothing was changed. Give the text to replace, or insert the new one")
	case n == 0:
		return "", db.Invalid("old_str does not occur verbatim in %s; nothing was changed. View the file, and copy the text "+
			"from it", path)
	case n > 1:
		return "", db.Invalid("old_str occurs %d times in %s, from the lines %v on; nothing was changed. Give more of the "+
			"text around it, so that it occurs once", n, path, linesOf(content, old))
	}
	return strings.Replace(content, old, text, 1), nil
}

// linesOf returns the numbers, from 1, of the lines in which occurrences of a text begin.
func linesOf(content, text string) (lines []int) {
	for from, line := 0, 1; ; {
		offset := strings.Index(content[from:], text)
		if offset < 0 {
			return lines
		}
		line += strings.Count(content[from:from+offset], "\n")
		lines = append(lines, line)
		line += strings.Count(text, "\n")
		from += offset + len(text)
	}
}

// Lines returns the lines of a text. A line feed at the end does not begin another line. An empty text has no lines.
func Lines(content string) []string {
	if content == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(content, "\n"), "\n")
}

// Insert returns the text of a file with a text inserted, as lines of its own, after the given line. Line 0 is before
// the first line; an empty text inserts an empty line. ErrInvalid if there is no such line.
func Insert(path, content, text string, line int) (string, error) {
	lines := Lines(content)
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
