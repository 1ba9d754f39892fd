package memoryfile

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLineChars is the most characters of a line of an index.
const maxLineChars = 200

// maxInlineChars is the most characters of a line that may tell something: an introduction, or a line of a section for
// short facts.
const maxInlineChars = 120

// inlineSections are the sections whose lines may tell short facts.
var inlineSections = regexp.MustCompile(`^(?:users?|people|rules|behaviou?r.*|recent.*)$`)

// tells reports whether a line tells something and points nowhere, or is too long for a pointer. A first plain line,
// the rows of the heads of tables and the lines of inlineSections may tell something short.
func (c *indexCheck) tells(l indexLine) bool {
	if !l.item && !l.row && !l.plain {
		return false
	}
	chars := utf8.RuneCountInString(strings.TrimSpace(l.text))
	if chars > maxLineChars {
		return true
	}
	if len(l.pointers) > 0 || l.row && c.headOfTable(l) {
		return false
	}
	short := inlineSections.MatchString(l.section) || l.plain && c.isIntroduction(l)
	return chars > maxInlineChars || !short
}

// headOfTable reports whether a row names the columns of a table, or is the line below it.
func (c *indexCheck) headOfTable(l indexLine) bool {
	next := l.number // the index of the next line
	return separator.MatchString(l.text) || next < len(c.lines) && c.lines[next].row &&
		separator.MatchString(c.lines[next].text)
}

// maxIntroLines is the most lines of an introduction.
const maxIntroLines = 3

// ofIndexes matches what an introduction of an index speaks of.
var ofIndexes = regexp.MustCompile(`(?i)\b(?:index|notes?|memory|memories|files?|pointers?)\b|索引|笔记|文件`)

// isIntroduction reports whether a line is one of the first paragraph, which speaks of the index, or leads to the list
// or the table below it.
func (c *indexCheck) isIntroduction(l indexLine) bool {
	if strings.HasSuffix(strings.TrimSpace(l.text), ":") && c.introduces(l) {
		return true
	}
	said := func(o indexLine) bool { return o.item || o.row || o.plain || o.inFence }
	first := slices.IndexFunc(c.lines, said)
	if l.number-1-first >= maxIntroLines ||
		slices.ContainsFunc(c.lines[first:l.number], func(o indexLine) bool { return !o.plain }) {
		return false
	}
	return slices.ContainsFunc(c.lines[first:min(first+maxIntroLines, len(c.lines))], func(o indexLine) bool {
		return o.plain && ofIndexes.MatchString(o.text)
	})
}

// introduces reports whether the next line that is not empty is an item or a row.
func (c *indexCheck) introduces(l indexLine) bool {
	for _, next := range c.lines[l.number:] {
		if strings.TrimSpace(next.text) != "" {
			return next.item || next.row
		}
	}
	return false
}

// stating matches the verb of a sentence that tells a fact, and the word behind it.
var stating = regexp.MustCompile(
	`(?i)\b(?:is|are|was|were|has|have|must|should|will|needs?|requires?|prefers?)\s+(\pL+)`)

// Words around such a verb in a line that only says what a file is about, or where something is.
var (
	asking = regexp.MustCompile(`(?i)\b(?:what|how|who|where|when|why|which|that|if|whether|for)\b`)
	placed = regexp.MustCompile(`(?i)^(?:in|at|on|under|here|there|kept|stored|described|listed|written|documented)$`)
)

// tellsBeside reports whether a line with a pointer, that is no row, tells a fact besides.
func tellsBeside(l indexLine) bool {
	if len(l.pointers) == 0 || !l.item && !l.plain {
		return false
	}
	for _, text := range saidIn(l) {
		for _, at := range stating.FindAllStringSubmatchIndex(text, -1) {
			if !asking.MatchString(text[:at[0]]) && !placed.MatchString(text[at[2]:at[3]]) {
				return true
			}
		}
	}
	return false
}
