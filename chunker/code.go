package chunker

import "strings"

// maxIndent is the deepest indentation that has its own rank.
const maxIndent = 40

// code is the outline of source code: blocks at the margin, blank lines, and indentation. A comment, a decorator or an
// attribute stays with the code after it.
type code struct {
	flat
	afterBlank   bool // the previous line is blank
	afterComment bool // the previous line that is not blank is a comment
}

func (c *code) read(l line) mark {
	trimmed := strings.TrimSpace(l.head)
	if trimmed == "" {
		c.afterBlank = true
		return mark{pos: l.start}
	}
	found := mark{pos: l.start, content: true, rank: c.rank(trimmed, indent(l.head))}
	c.afterBlank, c.afterComment = false, isComment(trimmed)
	return found
}

func (c *code) rank(trimmed string, indent int) rank {
	switch {
	case isCloser(trimmed):
		return noCut
	case c.afterBlank && indent == 0 && !c.afterComment:
		return block
	case c.afterBlank:
		return part
	case c.afterComment:
		return noCut
	default:
		return shallow + rank(min(indent, maxIndent))
	}
}

func (c *code) clone() outline { copied := *c; return &copied }

// isComment reports whether a line is a comment, a decorator or an attribute, which belongs to the code after it.
func isComment(trimmed string) bool {
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

// isCloser reports whether a line only closes the code before it.
func isCloser(trimmed string) bool {
	return strings.IndexByte("})]", trimmed[0]) >= 0 || strings.HasPrefix(trimmed, "</") || trimmed == "end" ||
		trimmed == "*/"
}
