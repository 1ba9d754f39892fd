package file

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// reaching adds pointers to an index for the files to which only its recent activity points, because that list drops
// old entries. The pointer goes into the table of the section with the name of the file's directory, if there is one
// and the index does not get too long. Otherwise it goes into the table of the section Topics, which points to
// directories instead of files if it gets too long.
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
		longer, ok := withRow(content, path.Base(path.Dir(f.Path)), r)
		if ok && utf8.RuneCountInString(longer) <= c.rules.maxChars() {
			content = longer
		} else {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return content
	}
	return c.withTopics(content, rows)
}

// withRow adds a row at the end of a section's table. It returns false if the section has no table. The row's first
// cell is the title, its last cell the pointer.
func withRow(content, section string, r row) (string, bool) {
	lines := readIndex(content)
	lastRow := -1
	for i, l := range lines {
		if l.row && l.section == strings.ToLower(section) {
			lastRow = i
		}
	}
	if lastRow < 0 {
		return content, false
	}
	columns := strings.Count(strings.Trim(lines[lastRow].text, "| "), "|") + 1
	if columns < 2 {
		return content, false
	}
	text := "| " + r.title + strings.Repeat(" | ", columns-1) + Pointer(r.path) + " |"
	return strings.Join(slices.Insert(Lines(content), lastRow+1, text), "\n") + "\n", true
}

const topicsHead = "| Topic | File |"

// withTopics adds rows to the table of the section Topics, and creates that section if there is none.
func (c *indexCheck) withTopics(content string, rows []row) string {
	lines := readIndex(content)
	isTopicRow := func(l indexLine) bool { return l.row && l.section == "topics" && len(l.pointers) == 1 }
	var before []row
	for _, l := range lines {
		if isTopicRow(l) {
			title, _, _ := strings.Cut(strings.Trim(l.text, "| "), "|")
			before = append(before, row{strings.TrimSpace(title), meant(l.pointers[0])[0], 1})
		}
	}
	head := slices.IndexFunc(lines, func(l indexLine) bool { return l.text == topicsHead })
	var kept []string
	rowsEnd := -1 // index in kept behind the last row
	for i, l := range lines {
		if head >= 0 && i > head && isTopicRow(l) {
			continue
		}
		if head < 0 && rowsEnd < 0 && recentHeading.MatchString(l.text) {
			kept = append(kept, "## Topics", "", topicsHead, "| --- | --- |")
			rowsEnd = len(kept)
			kept = append(kept, "")
		}
		kept = append(kept, l.text)
		if head >= 0 && i == head+1 { // the line below the column names
			rowsEnd = len(kept)
		}
	}
	if rowsEnd < 0 {
		kept = append(kept, "", "## Topics", "", topicsHead, "| --- | --- |")
		rowsEnd = len(kept)
	}
	if head >= 0 {
		rows = append(before, rows...)
	}
	for depth := strings.Count(Root, "/") + 8; ; depth-- {
		var texts []string
		for _, r := range rows {
			texts = append(texts, strings.TrimSuffix(r.String(), "\n"))
		}
		text := strings.Join(slices.Insert(slices.Clone(kept), rowsEnd, texts...), "\n") + "\n"
		if utf8.RuneCountInString(text) <= c.rules.maxChars() || depth == 1 {
			return text
		}
		rows = folded(rows, depth)
	}
}
