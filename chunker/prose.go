package chunker

import "strings"

// prose is the outline of paragraphs, separated by blank lines or page breaks.
type prose struct {
	flat
	afterText bool // the previous line is text
}

func (p *prose) read(l line) mark {
	content := strings.TrimSpace(l.head) != ""
	m := mark{pos: l.start, content: content}
	if content && (!p.afterText || l.head[0] == '\f') {
		m.rank = block
	}
	p.afterText = content
	return m
}

func (p *prose) clone() outline { copied := *p; return &copied }
