package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// manual is a documentation in HTML that a Debian package installs.
type manual struct {
	pkg, root string
	skip      *regexp.Regexp // paths below root to leave out: indexes and tables of contents
	number    *regexp.Regexp // matches the number before a title
}

func postgresManual() manual {
	return manual{
		pkg: "postgresql-doc-15", root: "/usr/share/doc/postgresql-doc-15/html",
		skip:   regexp.MustCompile(`^(?:bookindex|index|legalnotice)\.html$`),
		number: regexp.MustCompile(`^(?:(?:Chapter|Part|Appendix) \w+\. |\w+(?:\.\d+)+\. )`),
	}
}

func pythonManual() manual {
	return manual{
		pkg: "python3.11-doc", root: "/usr/share/doc/python3.11/html",
		skip:   regexp.MustCompile(`^(?:genindex.*|py-modindex|search|contents|index|.*/index)\.html$|^_`),
		number: regexp.MustCompile(`^\d+(?:\.\d+)*\. `),
	}
}

// page is a page of a manual. Its sections are in the order of their headings.
type page struct {
	name     string // the file's name, with its folders joined by -
	raw      string // as installed
	doc      *html.Node
	title    *html.Node // the title element; nil if there is none
	sections []*section
}

// section is the text between a heading and the next.
type section struct {
	level   int
	title   string // without the number
	chars   int    // of its own text
	lowest  bool   // no other section is inside
	heading *html.Node
}

// errNotInstalled says that a manual's package is not installed.
var errNotInstalled = errors.New("not installed")

// pages reads the pages of a manual, sorted by name.
func (m manual) pages() (all []*page, err error) {
	if _, err := os.Stat(m.root); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: apt-get install %s", errNotInstalled, m.pkg)
	}
	err = filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		name, err := filepath.Rel(m.root, path)
		if err != nil || m.skip.MatchString(name) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		p, err := m.page(strings.ReplaceAll(name, "/", "-"), string(raw))
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, p)
		return nil
	})
	slices.SortFunc(all, func(a, b *page) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// page parses a page, and finds its sections. It removes tables of contents, because they repeat the titles.
func (m manual) page(name, raw string) (*page, error) {
	p := &page{name: name, raw: raw}
	var err error
	if p.doc, err = html.Parse(strings.NewReader(raw)); err != nil {
		return nil, err
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for child := n.FirstChild; child != nil; {
			next := child.NextSibling
			switch {
			case isContents(child):
				n.RemoveChild(child)
			case child.DataAtom == atom.Title && p.title == nil:
				p.title = child
			case isAside(child):
			case levelOf(child) > 0:
				p.begin(child, m.titleOf(child))
			default:
				if child.Type == html.TextNode && len(p.sections) > 0 {
					p.sections[len(p.sections)-1].chars += len(onOneLine(child.Data))
				}
				walk(child)
			}
			child = next
		}
	}
	walk(p.doc)
	return p, nil
}

// begin adds the section of a heading.
func (p *page) begin(heading *html.Node, title string) {
	s := &section{level: levelOf(heading), title: title, lowest: true, heading: heading}
	if n := len(p.sections); n > 0 && p.sections[n-1].level < s.level {
		p.sections[n-1].lowest = false
	}
	p.sections = append(p.sections, s)
}

// titleOf returns the title in a heading, without its number and without the sign of its link.
func (m manual) titleOf(heading *html.Node) string {
	title := strings.TrimSpace(strings.TrimSuffix(onOneLine(textOf(heading)), "¶"))
	return strings.TrimSpace(m.number.ReplaceAllString(title, ""))
}

// levelOf returns the level of a heading; 0 for other nodes.
func levelOf(n *html.Node) int {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return int(n.Data[1] - '0')
	}
	return 0
}

// isContents reports whether an element is a table of contents.
func isContents(n *html.Node) bool {
	return slices.ContainsFunc(classesOf(n), func(class string) bool {
		return class == "toc" || class == "toctree-wrapper" || class == "contents" || strings.HasPrefix(class, "list-of-")
	})
}

// isAside reports whether an element does not belong to the page's text: it leads to other pages, or is invisible.
func isAside(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Script, atom.Style, atom.Form:
		return true
	}
	return attributeOf(n, "role") == "navigation" || slices.ContainsFunc(classesOf(n), func(class string) bool {
		return class == "navheader" || class == "navfooter" || class == "sphinxsidebar"
	})
}

func classesOf(n *html.Node) []string { return strings.Fields(attributeOf(n, "class")) }

func attributeOf(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// onOneLine returns a text with single blanks between its words.
func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Limits of the sections that questions are about.
const (
	leastChars = 200 // of the section's text
	leastWords = 2   // of the section's title
)

var (
	longWord = regexp.MustCompile(`[\pL]{3,}`)
	digits   = regexp.MustCompile(`[0-9.]+`)
)

// askable returns the sections that have a unique title and enough text.
func askable(pages []*page) (all []sectionOf) {
	key := func(s *section) string {
		return onOneLine(strings.ToLower(digits.ReplaceAllString(s.title, "")))
	}
	times := map[string]int{}
	for _, p := range pages {
		for _, s := range p.sections {
			times[key(s)]++
		}
	}
	for _, p := range pages {
		for _, s := range p.sections {
			if s.chars >= leastChars && len(longWord.FindAllString(s.title, -1)) >= leastWords && times[key(s)] == 1 {
				all = append(all, sectionOf{p, s})
			}
		}
	}
	return all
}

// sectionOf is a section with its page.
type sectionOf struct {
	*page
	*section
}

// untitle removes the title of section n from its page, and puts signs in its place that no search uses. It returns the
// signs: the text below stays a section, and can be found by them.
func (s sectionOf) untitle(n int) string {
	sign := signs(n)
	for child := s.heading.FirstChild; child != nil; child = s.heading.FirstChild {
		s.heading.RemoveChild(child)
	}
	s.heading.AppendChild(&html.Node{Type: html.TextNode, Data: sign})
	if s.section == s.sections[0] { // the page's own title, which often gives the file its name
		s.name = fmt.Sprintf("%04d.html", n)
		if s.page.title != nil {
			s.page.title.Parent.RemoveChild(s.page.title)
		}
	}
	return sign
}

// signs writes a number with characters that are no words.
func signs(n int) string {
	return strings.NewReplacer("0", "◇", "1", "◆").Replace(fmt.Sprintf("%012b", n))
}

// render returns the page's HTML.
func (p *page) render() (string, error) {
	var b strings.Builder
	err := html.Render(&b, p.doc)
	return b.String(), err
}

// sectionLines returns the first and last line, from 1, of the text below a Markdown heading, up to the next heading.
// ok is false if there is no such heading, or no text. The heading may contain links; in Markdown their targets follow
// the link texts.
func sectionLines(markdown, heading string) (first, last int, ok bool) {
	fence, lines := "", strings.Split(strings.TrimRight(markdown, "\n"), "\n")
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			closing := strings.TrimLeft(trimmed, "> ")
			if strings.HasPrefix(closing, fence) && strings.Trim(closing, "`") == "" {
				fence = ""
			}
		case opensFence.MatchString(trimmed):
			fence = opensFence.FindStringSubmatch(trimmed)[1]
		case first > 0 && atx.MatchString(trimmed):
			return first, last, last > 0
		case atx.MatchString(trimmed) && strings.HasPrefix(wordSigns(trimmed), wordSigns(heading)):
			first = i + 2
			continue
		}
		if first > 0 && trimmed != "" {
			last = i + 1
		}
	}
	return first, last, last > 0
}

var (
	atx        = regexp.MustCompile(`^#{1,6} `)
	opensFence = regexp.MustCompile("^(?:(?:[-*+>:]|[0-9]+[.)]) +)*(`{3,})[^`]*$") // also inside of a list or a definition
)

// wordSigns returns the letters and digits of a text, and the signs of removed titles.
func wordSigns(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '◇' || r == '◆' {
			return r
		}
		return -1
	}, text)
}
