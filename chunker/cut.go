package chunker

// A stretch is what a body may be made of, as far as its structure was read.
type stretch struct {
	from     int
	limit    int // the end of the longest body
	content  int // where the first line starts that is not a heading or blank
	depth    int // how many headings the first line is under
	trailing int // where headings start that nothing follows to the end of the text, or the end
}

// look reads the structure of the text between from and limit into marks, and what follows as far as it matters: a fifth of that, to see
// whether a section soon ends, or as much again, to see whether what begins before limit is whole.
func (s *splitter) look(from, limit int) stretch {
	near := min(limit+(limit-from)/5+lookahead, len(s.text))
	to := min(limit+(limit-from)+headBytes, len(s.text))
	at := s.outline.clone()
	st := stretch{from: from, limit: limit, content: to, depth: at.depth(), trailing: len(s.text)}
	s.marks = s.marks[:0]
	open := -1 // the whole that was not seen to end
	if at.inside() || !atLineStart(s.text, from) {
		st.content = from
		if at.inside() {
			s.marks, open = append(s.marks, mark{pos: from, whole: true}), 0
		}
	}
	headings := -1 // the mark of the headings just read
	for pos := s.lineFrom(from, to); pos >= 0 && pos < to && (pos < near || open >= 0 || headings >= 0); {
		l, next := lineAt(s.text, pos, to)
		m := at.read(l)
		if pos == from {
			st.depth = at.depth()
		}
		if m.content {
			st.content = min(st.content, pos)
		}
		headings = s.add(m, headings)
		if m.whole {
			open = len(s.marks) - 1
		}
		if open >= 0 && !at.inside() && next >= 0 {
			s.marks[open].end, open = next, -1
			s.marks = append(s.marks, mark{pos: next, rank: block})
		}
		pos = next
	}
	if headings >= 0 && to == len(s.text) {
		st.trailing = s.marks[headings].pos
		s.marks[headings].rank = noCut
	}
	return st
}

// add keeps a mark. Headings that follow each other are one mark, of the best rank among them. It takes and returns the index of the mark
// of the headings just read, or -1.
func (s *splitter) add(m mark, headings int) int {
	switch {
	case m.heading && headings >= 0:
		if m.rank != noCut {
			s.marks[headings].rank = min(s.marks[headings].rank, m.rank)
		}
		return headings
	case m.heading:
		s.marks = append(s.marks, m)
		return len(s.marks) - 1
	case !m.content:
		return headings
	case m.rank != noCut:
		s.marks = append(s.marks, m)
	}
	return -1
}

// cut returns where a body made of a stretch ends best, and whether a section begins there.
func (s *splitter) cut(st stretch) (to int, section bool) {
	best, bestRank, depth := 0, rank(1<<30), st.depth
	for _, m := range s.marks {
		if m.pos > st.limit {
			break
		}
		if m.pos <= st.content || m.rank == noCut {
			continue
		}
		if m.heading && depth > 0 && (m.rank == 1 || int(m.rank) < depth) {
			return m.pos, true // another top-level section, or out of the section this body began in
		}
		if m.heading && depth == 0 {
			depth = int(m.rank)
		}
		if r := s.rankIn(st, m); r <= bestRank && r != noCut {
			best, bestRank = m.pos, r
		}
	}
	switch {
	case st.limit == len(s.text):
		return st.limit, false
	case best > 0:
		return best, bestRank <= smallSection
	default:
		return s.cutLine(st), false
	}
}

// rankIn returns the rank of a cut at a mark, given how much of the stretch is before it: noCut if too little.
func (s *splitter) rankIn(st stretch, m mark) rank {
	fill, full := m.pos-st.from, st.limit-st.from
	switch {
	case m.heading && fill*5 < full:
		return smallSection
	case m.heading || m.rank == record:
		return m.rank
	case m.whole && m.end > st.limit && s.count(s.text[m.pos:m.end]) <= s.size:
		return whole
	case m.rank == block && fill*4 >= full, fill*2 >= full:
		return m.rank
	}
	return noCut
}

// cutLine returns where a stretch without a good mark is cut: at a sentence, a line, a word or a rune.
func (s *splitter) cutLine(st stretch) int {
	low := st.from + (st.limit-st.from)/2
	if st.content >= low && st.content < st.limit {
		low = st.content
	}
	low = max(low, st.from+1)
	line := 0
	if low < st.limit {
		line = lastLine(s.text, low, st.limit)
	}
	if s.lines || s.insideWhole(st.limit) {
		if line == 0 && st.content < low {
			line = lastLine(s.text, max(st.content, st.from), low)
		}
		if line > st.from {
			return line
		}
	}
	for _, to := range []func() int{
		func() int { return lastSentence(s.text, low, st.limit) },
		func() int { return line },
		func() int { return lastWord(s.text, low, st.limit) },
	} {
		if at := to(); at > st.from {
			return at
		}
	}
	return st.limit
}

// insideWhole tells whether a place is in the middle of a fence or a table.
func (s *splitter) insideWhole(pos int) bool {
	for _, m := range s.marks {
		if m.whole && m.pos < pos && (m.end == 0 || pos < m.end) {
			return true
		}
	}
	return false
}
