package file

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// reaching returns an index in which a table points to each file that only its recent activity points to, which rolls:
// the table of the section that is named as the file's directory, or else that of the section Topics. Where the index
// would be too long, directories take the places of their files in the latter.
func (c *indexCheck) reaching(content string) string {
	content = lineFeeds(content)
	lines := readIndex(content)
	var recent, lasting []indexLine
	for _, l := range lines {
		if recentSection.MatchString(l.section) {
			recent = append(recent, l)
		} else {
			lasting = append(lasting, l)
		}
	}
	var rows []row
	for _, f := range c.others {
		if f.Path == ManifestPath || pointedTo(lasting, f.Path) || !pointedTo(recent, f.Path) {
			continue
		}
		r := c.row(f, firstHeading(f.Content))
		with, ok := withRow(content, path.Base(path.Dir(f.Path)), r)
		if ok && utf8.RuneCountInString(with) <= c.rules.maxChars() {
			content = with
		} else {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return content
	}
	return c.withTopics(content, rows)
}

// withRow returns an index with a row at the end of the table of a section, if it has one. The first cell of the row is
// its title, the last one its pointer.
func withRow(content, section string, r row) (string, bool) {
	lines := readIndex(content)
	at := -1
	for i, l := range lines {
		if l.row && l.section == strings.ToLower(section) {
			at = i
		}
	}
	if at < 0 {
		return content, false
	}
	columns := strings.Count(strings.Trim(lines[at].text, "| "), "|") + 1
	if columns < 2 {
		return content, false
	}
	text := "| " + r.title + strings.Repeat(" | ", columns-1) + Pointer(r.path) + " |"
	return strings.Join(slices.Insert(Lines(content), at+1, text), "\n") + "\n", true
}

const topicsHead = "| Topic | File |"

// withTopics returns an index with more rows in the table of its section Topics, which it makes if there is none.
func (c *indexCheck) withTopics(content string, rows []row) string {
	lines := readIndex(content)
	own := func(l indexLine) bool { return l.row && l.section == "topics" && len(l.pointers) == 1 }
	var before []row
	for _, l := range lines {
		if own(l) {
			title, _, _ := strings.Cut(strings.Trim(l.text, "| "), "|")
			before = append(before, row{strings.TrimSpace(title), meant(l.pointers[0])[0], 1})
		}
	}
	head := slices.IndexFunc(lines, func(l indexLine) bool { return l.text == topicsHead })
	var kept []string
	at := -1 // of the rows, in kept
	for i, l := range lines {
		if head >= 0 && i > head && own(l) {
			continue
		}
		if head < 0 && at < 0 && recentHeading.MatchString(l.text) {
			kept = append(kept, "## Topics", "", topicsHead, "| --- | --- |")
			at = len(kept)
			kept = append(kept, "")
		}
		kept = append(kept, l.text)
		if head >= 0 && i == head+1 { // the line below the names of the columns
			at = len(kept)
		}
	}
	if at < 0 {
		kept = append(kept, "", "## Topics", "", topicsHead, "| --- | --- |")
		at = len(kept)
	}
	if head >= 0 {
		rows = append(before, rows...)
	}
	for depth := strings.Count(Root, "/") + 8; ; depth-- {
		var texts []string
		for _, r := range rows {
			texts = append(texts, strings.TrimSuffix(r.String(), "\n"))
		}
		text := strings.Join(slices.Insert(slices.Clone(kept), at, texts...), "\n") + "\n"
		if utf8.RuneCountInString(text) <= c.rules.maxChars() || depth == 1 {
			return text
		}
		rows = folded(rows, depth)
	}
}
