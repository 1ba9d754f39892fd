package chunker

import "strings"

// maxIndent is the deepest indentation told apart.
const maxIndent = 40

// code is the outline of source code: blocks that begin at the margin, blank lines, and indentation. A comment, and whatever else
// announces what follows it, stays with that.
type code struct {
	blank     bool // the line before is blank
	announced bool // the last line that is not blank is a comment
}

func (c *code) read(l line) mark {
	trimmed := strings.TrimSpace(l.head)
	if trimmed == "" {
		c.blank = true
		return mark{pos: l.start}
	}
	found := mark{pos: l.start, content: true, rank: c.rank(trimmed, indent(l.head))}
	c.blank, c.announced = false, announces(trimmed)
	return found
}

// rank returns the rank of a cut before a line.
func (c *code) rank(trimmed string, indent int) rank {
	switch {
	case closes(trimmed):
		return noCut
	case c.blank && indent == 0 && !c.announced:
		return block
	case c.blank:
		return part
	case c.announced:
		return noCut
	default:
		return shallow + rank(min(indent, maxIndent))
	}
}

func (c *code) inside() bool    { return false }
func (c *code) depth() int      { return 0 }
func (c *code) heading() string { return "" }
func (c *code) clone() outline  { copied := *c; return &copied }

// announces tells whether a line belongs to what comes after it: a comment, a decorator, an attribute.
func announces(trimmed string) bool {
	switch next := trimmed[1:]; trimmed[0] {
	case '@', '*', ';', '%':
		return true
	case '/':
		return next != "" && (next[0] == '/' || next[0] == '*')
	case '#':
		return next == "" || strings.IndexByte(" #![", next[0]) >= 0
	case '-':
		return next != "" && next[0] == '-'
	case '<':
		return strings.HasPrefix(next, "!--")
	}
	return false
}

// closes tells whether a line only ends what is before it.
func closes(trimmed string) bool {
	return strings.IndexByte("})]", trimmed[0]) >= 0 || strings.HasPrefix(trimmed, "</") || trimmed == "end" || trimmed == "*/"
}
