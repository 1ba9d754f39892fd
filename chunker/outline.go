package chunker

import "strings"

// rank orders places to cut. The lowest rank is the best.
type rank int

// The ranks. A section's rank is its depth in headings, 1 to 6.
const (
	noCut        rank = 0
	smallSection rank = 7  // a section after text that fills little of the chunk
	atomic       rank = 8  // a fence or table that fits in a chunk, but not in the rest of the current one
	record       rank = 9  // a row
	block        rank = 10 // a paragraph, or a top-level block of code
	part         rank = 11 // a list item, or code after a blank line
	shallow      rank = 12 // a line at the margin; for an indented line, its indentation is added
)

// A mark is the start of a line that begins a part of the text.
type mark struct {
	pos     int
	end     int  // end of an atomic mark's fence or table; 0 if it was not read
	rank    rank // noCut where the text should not be cut
	content bool // the line is neither a heading nor blank
	heading bool
	atomic  bool // a fence or table starts here, which should stay in one chunk
	asks    bool // a question starts here, and the answer to another one is before it
}

// A line is a line of text as an outline reads it.
type line struct {
	text  string // the whole text
	start int
	head  string // the line without its end, at most headBytes
	after int    // start of the next line; -1 if this is the last or longer than headBytes
}

// next returns the head of the next line. It is empty if there is no next line, or if l is longer than headBytes.
func (l line) next() string {
	if l.after < 0 {
		return ""
	}
	return strings.TrimSuffix(headAt(l.text, l.after), "\r")
}

// headBytes is how much of a line an outline reads.
const headBytes = 1024

// An outline reads the structure of a text line by line.
type outline interface {
	read(l line) mark
	inside() bool    // reports whether the next line continues a fence or a table
	depth() int      // returns the number of headings above the last line
	heading() string // returns those headings, or the header row
	clone() outline
}

// flat is the outline of text without fences, tables and headings.
type flat struct{}

func (flat) inside() bool    { return false }
func (flat) depth() int      { return 0 }
func (flat) heading() string { return "" }

// prose is the outline of paragraphs. Blank lines or page breaks separate them.
type prose struct {
	flat
	faq       faq
	afterText bool // the previous line is text
}

func (p *prose) read(l line) mark {
	content := strings.TrimSpace(l.head) != ""
	m := mark{pos: l.start, content: content}
	if content && (!p.afterText || l.head[0] == '\f') {
		m.rank = block
	}
	if content {
		m.asks = p.faq.read(l, !p.afterText, false)
	}
	p.afterText = content
	return m
}

func (p *prose) clone() outline { copied := *p; return &copied }

func newOutline(kind Kind, text string) outline {
	switch kind {
	case Markdown:
		return newMarkdown(text)
	case Code:
		return &code{afterBlank: true}
	case Rows:
		return newRows(text)
	default:
		return &prose{}
	}
}

// lineAt returns the line that starts at pos, and the start of the next line. That start is -1 if it is not before to.
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

// longLineEnd returns the start of the line after the one that contains pos, or -1 if that start is not before to.
func longLineEnd(text string, pos, to int) int {
	if pos >= to {
		return -1
	}
	if i := strings.IndexByte(text[pos:to], '\n'); i >= 0 {
		return pos + i + 1
	}
	return -1
}

// shorten returns the whole runes in the first n bytes of a heading.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:runeStart(s, n)]
}

// indent returns the width of the white space before a line; a tab counts as four.
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
