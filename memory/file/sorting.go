package file

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// maxPartChars: a part of an index that is not longer is not divided further. A longer part is divided if it has
// headings.
const maxPartChars = 8_000

// part is a piece of an index that goes to one file.
type part struct {
	title string
	lines []string
	first int // number of its first line
}

func (p part) text() string { return strings.Trim(strings.Join(p.lines, "\n"), "\n") }

// parts divides the lines that neither stay nor belong to a topic by their headings: by the highest level with several
// headings, and long parts by the next level.
func (g *Grown) parts(taken []bool) []part {
	var lines []indexLine
	for i, l := range g.lines {
		if !g.kept[i] && !taken[i] {
			lines = append(lines, l)
		}
	}
	return divide("", lines, 1)
}

// divide divides lines by their headings of a level. If there are fewer than two, it uses the next level. title is the
// title of the surrounding part.
func divide(title string, lines []indexLine, level int) (all []part) {
	for level <= 6 && countLevel(lines, level) < 2 {
		level++
	}
	if level > 6 {
		return whole(title, lines)
	}
	start := 0
	add := func(end int) {
		section := lines[start:end]
		name := title
		if start < end && levelOf(section[0]) == level {
			name = headingOf(section[0])
			if title != "" {
				name = title + ": " + name
			}
		}
		if chars(section) > maxPartChars && level < 6 {
			all = append(all, divide(name, section, level+1)...)
		} else {
			all = append(all, whole(name, section)...)
		}
		start = end
	}
	for i, l := range lines {
		if i > start && levelOf(l) == level {
			add(i)
		}
	}
	add(len(lines))
	return all
}

// whole returns lines as one part, or no part if they say nothing. Without a title, the part gets the last heading
// before its text as the title.
func whole(title string, lines []indexLine) []part {
	p := part{title: title}
	says := false
	for _, l := range lines {
		if p.first == 0 {
			p.first = l.number
		}
		if title == "" && !says && levelOf(l) > 0 {
			p.title = headingOf(l)
		}
		p.lines = append(p.lines, l.text)
		says = says || levelOf(l) == 0 && strings.TrimSpace(l.text) != ""
	}
	if !says {
		return nil
	}
	return []part{p}
}

// levelOf returns the level of a heading, or 0 if the line is not a heading.
func levelOf(l indexLine) int {
	if l.inFence || !heading.MatchString(l.text) {
		return 0
	}
	return strings.IndexFunc(l.text, func(r rune) bool { return r != '#' })
}

func headingOf(l indexLine) string {
	return strings.Trim(heading.FindStringSubmatch(l.text)[1], "# \t")
}

func countLevel(lines []indexLine, level int) (n int) {
	for _, l := range lines {
		if levelOf(l) == level {
			n++
		}
	}
	return n
}

func chars(lines []indexLine) (n int) {
	for _, l := range lines {
		n += utf8.RuneCountInString(l.text) + 1
	}
	return n
}

// sorting puts parts of an index into files.
type sorting struct {
	*Grown
	taken []bool            // for each line, whether it belongs to a topic
	moved int               // number of moved lines
	texts map[string]*topic // folded path → file
	order []*topic          // files that get something, in order
}

// topic is a file of a tree with its text before and after.
type topic struct {
	path, title   string
	sha           string // SHA-256 of the text before; empty if there is no file
	before, after string
}

func newSorting(g *Grown) *sorting {
	w := &sorting{Grown: g, taken: make([]bool, len(g.lines)), texts: map[string]*topic{}}
	for _, f := range g.others {
		w.texts[fold(f.Path)] = &topic{path: f.Path, sha: f.SHA256, before: f.Content, after: f.Content}
	}
	return w
}

// take moves the lines of a topic to the topic's file. It skips a topic if agents may not write its file. It skips
// lines that stay, or that another topic took.
func (w *sorting) take(t Topic) {
	file, err := ParseFile(t.Path)
	if err != nil || w.tree.Rules.IsIndex(file) || fold(file) == fold(ManifestPath) {
		return
	}
	p := part{title: t.Title}
	var numbers []int
	for _, r := range t.Lines {
		for n := max(r[0], 1); n <= min(r[1], len(w.lines)); n++ {
			if i := n - 1; !w.kept[i] && !w.taken[i] && !slices.Contains(numbers, i) {
				numbers = append(numbers, i)
			}
		}
	}
	slices.Sort(numbers)
	says := false
	for _, i := range numbers {
		p.lines = append(p.lines, w.lines[i].text)
		says = says || strings.TrimSpace(w.lines[i].text) != ""
	}
	if says && w.append(file, p) {
		for _, i := range numbers {
			w.taken[i] = true
		}
	}
}

// place moves a part to the file in which it belongs according to the manifest.
func (w *sorting) place(p part) {
	pattern, score := w.manifest.best(p.title)
	if score == 0 {
		pattern, _ = w.manifest.best(p.title + " " + db.Beginning(p.text(), 300))
	}
	for _, pattern := range []string{pattern, Root + "/topics/*.md"} {
		for n := 1; n <= MaxFiles; n++ {
			if w.append(named(pattern, p.fileName(n)), p) {
				return
			}
			if !strings.Contains(pattern, "*") {
				break
			}
		}
	}
	w.halve(p)
}

// halve divides a part that fits in no file, and places both halves.
func (w *sorting) halve(p part) {
	if half := len(p.lines) / 2; half > 0 {
		w.place(part{title: p.title, lines: p.lines[:half], first: p.first})
		w.place(part{title: p.title, lines: p.lines[half:], first: p.first + half})
	}
}

// named returns the path of a file that a manifest entry covers.
func named(pattern, name string) string {
	if file := strings.ReplaceAll(pattern, "*", name); checkPath(file) == nil {
		return file
	}
	return strings.ReplaceAll(pattern, "*", "topic-"+hashOf(name)[:8])
}

var notInSlug = regexp.MustCompile(`[^\pL\pM\p{Nd}]+`)

// slug returns a text as a file name. It is empty if the text has no letters or digits.
func slug(text string) string {
	name := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(norm.NFKC.String(text)), "-"), "-")
	return strings.Trim(db.Beginning(name, 50), "-…")
}

// fileName returns a file name from a part's title; n numbers files of the same name.
func (p part) fileName(n int) string {
	name := cmp.Or(slug(p.title), fmt.Sprintf("line-%d", p.first))
	if n > 1 {
		name += fmt.Sprintf("-%d", n)
	}
	return name
}

// append adds a part at the end of a file. It reports whether the file can take it.
func (w *sorting) append(file string, p part) bool {
	t := w.texts[fold(file)]
	if t == nil {
		t = &topic{path: file}
	}
	text := t.after
	if t.after == "" {
		text = "# " + titleOf(p.title, file) + "\n"
	}
	body := p.text()
	if l := readIndex(p.lines[0]); t.after == "" && len(l) > 0 && levelOf(l[0]) > 0 && headingOf(l[0]) == p.title {
		body = strings.Trim(strings.Join(p.lines[1:], "\n"), "\n")
	}
	text = strings.TrimSuffix(text, "\n") + "\n\n" + body + "\n"
	if len(text) > MaxFileBytes || w.manifest.allows(t.path, t.before, text) != nil || w.blocked(t) {
		return false
	}
	if w.texts[fold(file)] == nil {
		w.texts[fold(file)] = t
	}
	if !slices.Contains(w.order, t) {
		w.order = append(w.order, t)
	}
	t.after, t.title = text, titleOf(p.title, t.path)
	for _, l := range p.lines {
		if strings.TrimSpace(l) != "" {
			w.moved++
		}
	}
	return true
}

// blocked reports whether a new file would be below a file, or has the path of a directory.
func (w *sorting) blocked(t *topic) bool {
	for folded := range w.texts {
		if file := fold(t.path); folded != file && (within(folded, file) || within(file, folded)) {
			return true
		}
	}
	return false
}

// titleOf returns a title as one short line. Without a title it uses the file's name.
func titleOf(title, file string) string {
	title = strings.Trim(strings.Join(strings.Fields(strings.NewReplacer("|", " ", "`", "").Replace(title)), " "), "# ")
	if title == "" {
		title = strings.ReplaceAll(strings.TrimSuffix(path.Base(file), path.Ext(file)), "-", " ")
	}
	return db.Beginning(title, 80)
}

// allOthers returns the files of the tree except the index, as they would be.
func (w *sorting) allOthers() (all []File) {
	for _, t := range w.texts {
		all = append(all, File{Entry: Entry{Path: t.path}, Content: t.after})
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// files returns the changed files, and the index last.
func (w *sorting) files() (all []ProposedFile, err error) {
	add := func(path, sha, before, after string) error {
		diff, err := difference(path, path, before, after)
		all = append(all, ProposedFile{NewFile{Path: path, Content: after, Expected: &sha}, diff})
		return err
	}
	for _, t := range w.order {
		if err := add(t.path, t.sha, t.before, t.after); err != nil {
			return nil, err
		}
	}
	indexPath := w.tree.Rules.index()
	if w.now.Path != "" {
		indexPath = w.now.Path
	}
	return all, add(indexPath, w.now.SHA256, w.now.Content, w.index())
}
