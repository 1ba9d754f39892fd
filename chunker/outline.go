package chunker

import (
	"strings"
)

// rank says how good a place to cut is: the lower, the better.
type rank int

// The ranks. Sections have the ranks 1 to 6, by how many headings they are under, themselves included.
const (
	noCut        rank = 0
	smallSection rank = 7  // a section of any depth, when what is before it fills little of the chunk
	whole        rank = 8  // a fence or table that fits in a chunk, but not in what is left of this one
	record       rank = 9  // a row
	block        rank = 10 // a paragraph, or a top-level block of code
	part         rank = 11 // a list item, or code after a blank line
	shallow      rank = 12 // a line of code at the margin; an indented one ranks after it by its indentation
)

// A mark is a place where structure begins, always at the start of a line.
type mark struct {
	pos     int
	end     int  // for a whole: where it ends, 0 if not within what was read
	rank    rank // noCut where nothing should be parted
	content bool // the line holds something other than a heading or white space
	heading bool // the line is a heading
	whole   bool // a fence or table begins
}

// A line is one line of the text as an outline reads it.
type line struct {
	text  string // the whole text
	start int
	head  string // without its end, at most headBytes
	after int    // where the line after it starts, -1 if this is the last or longer than headBytes
}

// next returns the head of the line after l, "" if there is none or l is long.
func (l line) next() string {
	if l.after < 0 {
		return ""
	}
	return strings.TrimSuffix(headAt(l.text, l.after), "\r")
}

// headBytes is how much of a line is looked at to know what it is.
const headBytes = 1024

// An outline reads a document's structure, line by line from the top. Of a long line it sees the head only.
type outline interface {
	read(l line) mark
	inside() bool    // the next line is still part of a fence, table or record
	depth() int      // how many headings the line read last is under
	heading() string // those headings, or the header row
	clone() outline
}

// newOutline returns the outline at the top of text.
func newOutline(kind Kind, text string) outline {
	switch kind {
	case Markdown:
		return newMarkdown(text)
	case Code:
		return &code{blank: true}
	case Rows:
		return newRows(text)
	default:
		return &prose{}
	}
}

// lineAt returns the line that starts at pos, and where the next one starts; -1 if that is not before to and pos+headBytes.
func lineAt(text string, pos, to int) (line, int) {
	head := headAt(text, pos)
	next := pos + len(head) + 1
	if next > len(text) || text[next-1] != '\n' {
		return line{text: text, start: pos, head: head, after: -1}, longLineEnd(text, next-1, to)
	}
	return line{text: text, start: pos, head: strings.TrimSuffix(head, "\r"), after: next}, next
}

// headAt returns the head of the line that starts at pos.
func headAt(text string, pos int) string {
	end := runeStart(text, min(pos+headBytes, len(text)))
	if i := strings.IndexByte(text[pos:end], '\n'); i >= 0 {
		return text[pos : pos+i]
	}
	return text[pos:end]
}

// longLineEnd returns the start of the line after the one that goes on at pos, or -1 if that is not before to.
func longLineEnd(text string, pos, to int) int {
	if pos >= to {
		return -1
	}
	if i := strings.IndexByte(text[pos:to], '\n'); i >= 0 {
		return pos + i + 1
	}
	return -1
}

// clip shortens a heading to n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:runeStart(s, n)]
}

// indent returns the width of the white space before a line, a tab counting four.
func indent(head string) int {
	width := 0
	for i := range len(head) {
		switch head[i] {
		case ' ':
			width++
		case '\t':
			width += 4
		default:
			return width
		}
	}
	return width
}

// prose is the outline of paragraphs parted by blank lines, or by pages.
type prose struct{ text bool }

func (p *prose) read(l line) mark {
	content := strings.TrimSpace(l.head) != ""
	m := mark{pos: l.start, content: content}
	if content && (!p.text || l.head[0] == '\f') {
		m.rank = block
	}
	p.text = content
	return m
}

func (p *prose) inside() bool    { return false }
func (p *prose) depth() int      { return 0 }
func (p *prose) heading() string { return "" }
func (p *prose) clone() outline  { c := *p; return &c }
