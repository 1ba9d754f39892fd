package chunker

import (
	"slices"
	"strings"
)

// Limits of a heading, in bytes.
const (
	maxHeading = 1024 // all titles of a path
	maxTitle   = 200
)

// maxFrontMatter bounds front matter, in bytes.
const maxFrontMatter = 16 << 10

// markdown is the outline of a Markdown document: the current headings, and the fence or table around the line. It
// reads only what decides where to cut. It simplifies: a setext heading has one line, and a fence may be indented by
// any amount, as in lists.
type markdown struct {
	titles    [6]string // the current headings, by level
	level     int       // level of the current heading; 0 before the first one
	front     int       // end of the front matter
	fence     string    // the characters that opened the current fence; empty outside
	table     bool      // the line is in a table
	underline bool      // the next line is the underline of a setext heading
	faq       faq
	paragraph bool // the previous line is text
}

// newMarkdown returns the outline at the start of a text, after its front matter.
func newMarkdown(text string) *markdown {
	m := &markdown{}
	if !strings.HasPrefix(text, "---\n") && !strings.HasPrefix(text, "---\r\n") {
		return m
	}
	top := text[:min(maxFrontMatter, len(text))]
	if i := strings.Index(top, "\n---"); i >= 0 && strings.TrimSpace(headAt(text, i+4)) == "" {
		m.front = i + 4
	}
	return m
}

func (m *markdown) read(l line) mark {
	trimmed := strings.TrimSpace(l.head)
	switch {
	case l.start < m.front:
		return mark{pos: l.start, content: true}
	case m.fence != "":
		return m.readFence(l, trimmed)
	case m.underline:
		m.underline = false
		return mark{pos: l.start, heading: true}
	case m.table:
		m.table = isRow(l.next())
		return mark{pos: l.start, content: true, rank: shallow}
	case trimmed == "":
		m.paragraph = false
		return mark{pos: l.start}
	}
	if level, title := headingOf(l, m.paragraph); level > 0 {
		m.underline = trimmed[0] != '#'
		return m.readHeading(l, level, title)
	}
	return m.readText(l, trimmed)
}

func (m *markdown) readFence(l line, trimmed string) mark {
	if len(trimmed) >= len(m.fence) && strings.Trim(trimmed, m.fence[:1]) == "" {
		m.fence = ""
	}
	return mark{pos: l.start, content: true}
}

// readHeading makes a heading the current one.
func (m *markdown) readHeading(l line, level int, title string) mark {
	m.titles[level-1], m.level = shorten(title, maxTitle), level
	clear(m.titles[level:])
	m.paragraph = false
	return mark{pos: l.start, heading: true, rank: rank(m.depth()), asks: m.faq.read(l, true, true)}
}

// readText reads a line that is neither blank nor a heading.
func (m *markdown) readText(l line, trimmed string) mark {
	found := mark{pos: l.start, content: true}
	afterText := m.paragraph
	m.paragraph = true
	found.asks = m.faq.read(l, !afterText, false)
	if m.fence = fenceOf(trimmed); m.fence != "" {
		m.paragraph = false
		found.rank, found.atomic = block, true
		return found
	}
	if isRow(l.head) && isDelimiterRow(l.next()) {
		m.table, m.paragraph = true, false
		found.rank, found.atomic = block, true
		return found
	}
	switch item := isItem(trimmed); {
	case !afterText && indent(l.head) == 0:
		found.rank = block
	case !afterText || item && indent(l.head) == 0:
		found.rank = part
	case item:
		found.rank = shallow + rank(min(indent(l.head), maxIndent))
	}
	return found
}

func (m *markdown) inside() bool { return m.fence != "" || m.table }

func (m *markdown) depth() int {
	if m.level == 0 {
		return 0
	}
	return 1 + len(named(m.titles[:m.level-1]))
}

func (m *markdown) heading() string {
	return shorten(strings.Join(named(m.titles[:]), " > "), maxHeading)
}

// named returns the titles that are not empty.
func named(titles []string) []string {
	return slices.DeleteFunc(slices.Clone(titles), func(title string) bool { return title == "" })
}

func (m *markdown) clone() outline { c := *m; return &c }

// headingOf returns the level and title of a line that is a heading, or level 0.
func headingOf(l line, afterText bool) (level int, title string) {
	text := strings.TrimLeft(l.head, " ")
	if len(l.head)-len(text) > 3 || text == "" {
		return 0, ""
	}
	if text[0] == '#' {
		return atxHeading(text)
	}
	if afterText || !canBeHeading(text) {
		return 0, ""
	}
	if level = underlineOf(l.next()); level == 0 {
		return 0, ""
	}
	return level, strings.TrimSpace(text)
}

// atxHeading returns the level and title of a line such as "## Title ##", or level 0.
func atxHeading(text string) (level int, title string) {
	rest := strings.TrimLeft(text, "#")
	level = len(text) - len(rest)
	if level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(rest)
	if bare := strings.TrimRight(title, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		title = strings.TrimSpace(bare)
	}
	return level, title
}

// canBeHeading reports whether a line would be a heading if an underline followed.
func canBeHeading(text string) bool {
	return text[0] != '>' && text[0] != '|' && !isItem(text) && fenceOf(text) == "" && underlineOf(text) == 0
}

// underlineOf returns 1 for a line of '=', 2 for one of '-', else 0.
func underlineOf(head string) int {
	text := strings.TrimRight(strings.TrimLeft(head, " "), " \t")
	switch {
	case text == "" || indent(head) > 3:
		return 0
	case strings.Trim(text, "=") == "":
		return 1
	case strings.Trim(text, "-") == "":
		return 2
	}
	return 0
}

// fenceOf returns the run of backticks or tildes that opens a fence, or "".
func fenceOf(trimmed string) string {
	if trimmed == "" || trimmed[0] != '`' && trimmed[0] != '~' {
		return ""
	}
	rest := strings.TrimLeft(trimmed, trimmed[:1])
	run := trimmed[:len(trimmed)-len(rest)]
	if len(run) < 3 || run[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return run
}

func isRow(head string) bool { return strings.Contains(head, "|") }

// isDelimiterRow reports whether a line separates a table's header from its body: "| --- | :-: |".
func isDelimiterRow(head string) bool {
	return strings.Contains(head, "|") && strings.Contains(head, "-") && strings.Trim(head, "|-: \t") == ""
}

func isItem(trimmed string) bool {
	marker := "-*+"
	if trimmed[0] >= '0' && trimmed[0] <= '9' {
		rest := strings.TrimLeft(trimmed[:min(10, len(trimmed))], "0123456789")
		if rest == "" {
			return false
		}
		trimmed, marker = trimmed[min(10, len(trimmed))-len(rest):], ".)"
	}
	return strings.Contains(marker, trimmed[:1]) && (len(trimmed) == 1 || trimmed[1] == ' ' || trimmed[1] == '\t')
}
