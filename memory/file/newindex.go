package file

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// index returns the new index: the lines that stay, below their headings, and a table of pointers to all other files.
// If the table would be too long, it points to directories instead of their files.
func (w *sorting) index() string {
	head := w.keptLines()
	lines := readIndex(head)
	c := &indexCheck{rules: w.tree.Rules, manifest: w.manifest, others: w.allOthers()}
	var rows []row
	for _, f := range c.others {
		if f.Path != ManifestPath && !pointedTo(lines, f.Path) {
			rows = append(rows, c.row(f, cmp.Or(w.texts[fold(f.Path)].title, firstHeading(f.Content))))
		}
	}
	if len(rows) == 0 {
		return head
	}
	for depth := strings.Count(Root, "/") + 8; ; depth-- {
		var b strings.Builder
		b.WriteString(head + "\n## Topics\n\n| Topic | File |\n| --- | --- |\n")
		for _, r := range rows {
			b.WriteString(r.String())
		}
		if utf8.RuneCountInString(b.String()) <= w.tree.Rules.maxChars() || depth == 1 {
			return b.String()
		}
		rows = folded(rows, depth)
	}
}

// row is a row of the table of pointers. It points to a file, or to a directory of several files.
type row struct {
	title, path string
	files       int
}

func (r row) String() string { return fmt.Sprintf("| %s | %s |\n", r.title, Pointer(r.path)) }

// row returns the row for a file, with a title that breaks no rule.
func (c *indexCheck) row(f File, title string) row {
	for _, title := range []string{titleOf(title, f.Path), titleOf("", f.Path)} {
		r := row{title, f.Path, 1}
		c.lines, c.broken = readIndex(strings.TrimSuffix(r.String(), "\n")), nil
		c.checkLine(c.lines[0])
		if c.checkDuplicates(); len(c.broken) == 0 {
			return r
		}
	}
	return row{strings.TrimPrefix(path.Dir(f.Path), Root), f.Path, 1}
}

// firstHeading returns the first heading of a text, or "".
func firstHeading(text string) string {
	for _, l := range readIndex(text) {
		if levelOf(l) > 0 {
			return headingOf(l)
		}
	}
	return ""
}

// folded replaces the rows for files in directories of the given depth by one row per directory.
func folded(rows []row, depth int) (all []row) {
	for _, r := range rows {
		dir := path.Dir(strings.TrimSuffix(r.path, "/"))
		if strings.Count(dir, "/") != depth || dir == Root {
			all = append(all, r)
			continue
		}
		i := slices.IndexFunc(all, func(o row) bool { return o.path == dir+"/" })
		if i < 0 {
			all = append(all, row{path: dir + "/"})
			i = len(all) - 1
		}
		all[i].files += r.files
		all[i].title = fmt.Sprintf("%s (%d files)", path.Base(dir), all[i].files)
	}
	return all
}

// keptLines returns the lines of the old index that stay, below their headings.
func (w *sorting) keptLines() string {
	title := "# Memory"
	if len(w.lines) > 0 && levelOf(w.lines[0]) == 1 && w.obeys(w.lines[0]) {
		title = w.lines[0].text
	}
	text, section, last := title+"\n", -1, ""
	for i, l := range w.lines {
		if levelOf(l) > 0 && i > 0 {
			section = i
		}
		if !w.kept[i] {
			continue
		}
		if section >= 0 && w.obeys(w.lines[section]) {
			text += "\n" + w.lines[section].text + "\n"
			last = ""
		}
		section = -1
		if last == "" || !w.kept[i-1] {
			text += "\n"
		}
		text += l.text + "\n"
		last = l.text
	}
	return text
}

// obeys reports whether a line alone breaks no rule.
func (w *sorting) obeys(l indexLine) bool {
	c := &indexCheck{rules: w.tree.Rules, manifest: w.manifest, lines: w.lines, others: w.others}
	c.checkLine(l)
	return len(c.broken) == 0
}
