package chunker

import (
	"cmp"
	"slices"
)

// A window is the text from which the next body is cut.
type window struct {
	from     int
	limit    int // end of the longest body
	content  int // start of the first line that is neither a heading nor blank
	depth    int // how many headings are above the first line
	trailing int // start of the headings at the end of the text that nothing follows, or the end of the text
}

// readWindow reads the marks between from and limit. It reads a fifth further, to see whether a section ends soon.
// While a fence or table is open, it reads up to as much again, to see whether the fence or table fits in a chunk.
func (s *splitter) readWindow(from, limit int) window {
	near := min(limit+(limit-from)/5+lookahead, len(s.text))
	to := min(limit+(limit-from)+headBytes, len(s.text))
	outline := s.outline.clone()
	w := window{from: from, limit: limit, content: to, depth: outline.depth(), trailing: len(s.text)}
	s.marks = s.marks[:0]
	open := -1 // index of the mark of an open fence or table, or -1
	if outline.inside() || !atLineStart(s.text, from) {
		w.content = from
		if outline.inside() {
			s.marks, open = append(s.marks, mark{pos: from, atomic: true}), 0
		}
	}
	headings := -1 // index of the mark of the headings directly before, or -1
	for pos := firstLine(s.text, from, to); pos >= 0 && pos < to && (pos < near || open >= 0 || headings >= 0); {
		l, next := lineAt(s.text, pos, to)
		m := outline.read(l)
		if pos == from {
			w.depth = outline.depth()
		}
		if m.content {
			w.content = min(w.content, pos)
		}
		headings = s.add(m, headings)
		if m.atomic {
			open = len(s.marks) - 1
		}
		if open >= 0 && !outline.inside() && next >= 0 {
			s.marks[open].end, open = next, -1
			s.marks = append(s.marks, mark{pos: next, rank: block})
		}
		pos = next
	}
	if headings >= 0 && to == len(s.text) {
		w.trailing = s.marks[headings].pos
		s.marks[headings].rank = noCut
	}
	return w
}

// add adds a mark. Consecutive headings share one mark, which has the best of their ranks. headings is the index of the
// mark of the headings directly before m, or -1; add returns the index for the next call.
func (s *splitter) add(m mark, headings int) int {
	switch {
	case m.heading && headings >= 0:
		if m.rank != noCut {
			s.marks[headings].rank = min(s.marks[headings].rank, m.rank)
			s.marks[headings].asks = s.marks[headings].asks || m.asks
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

// cut returns the best end of the next body in a window, and whether a section starts there.
func (s *splitter) cut(w window) (to int, section bool) {
	best, bestRank, depth := 0, rank(1<<30), w.depth
	for _, m := range s.marks {
		if m.pos > w.limit {
			break
		}
		if m.pos <= w.content || m.rank == noCut {
			continue
		}
		if m.asks || m.heading && depth > 0 && (m.rank == 1 || int(m.rank) < depth) {
			// A question, a top-level section, or the end of the section in which the body started.
			return m.pos, true
		}
		if m.heading && depth == 0 {
			depth = int(m.rank)
		}
		if r := s.rankIn(w, m); r <= bestRank && r != noCut {
			best, bestRank = m.pos, r
		}
	}
	switch {
	case w.limit == len(s.text):
		return w.limit, false
	case best > 0:
		return best, bestRank <= smallSection
	default:
		return s.cutLine(w), false
	}
}

// rankIn returns the rank of a cut at a mark, or noCut if the window before the mark is too little filled.
func (s *splitter) rankIn(w window, m mark) rank {
	fill, full := m.pos-w.from, w.limit-w.from
	switch {
	case m.heading && fill*5 < full:
		return smallSection
	case m.heading || m.rank == record:
		return m.rank
	case m.atomic && m.end > w.limit && s.count(s.text[m.pos:m.end]) <= s.size:
		return atomic
	case m.rank == block && fill*4 >= full, fill*2 >= full:
		return m.rank
	}
	return noCut
}

// cutLine returns where to cut a window without a good mark: at a sentence, a line, a word or a rune.
func (s *splitter) cutLine(w window) int {
	low := w.from + (w.limit-w.from)/2
	if w.content >= low && w.content < w.limit {
		low = w.content
	}
	low = max(low, w.from+1)
	line := 0
	if low < w.limit {
		line = lastLine(s.text, low, w.limit)
	}
	if s.lines || s.insideAtomic(w.limit) {
		if line == 0 && w.content < low {
			line = lastLine(s.text, max(w.content, w.from), low)
		}
		if line > w.from {
			return line
		}
	}
	// In invalid UTF-8 the last sentence or line may end before low.
	if end := cmp.Or(lastSentence(s.text, low, w.limit), line); end > w.from {
		return end
	}
	if end := lastWord(s.text, low, w.limit); end > w.from {
		return end
	}
	return w.limit
}

// insideAtomic reports whether pos is inside a fence or a table.
func (s *splitter) insideAtomic(pos int) bool {
	return slices.ContainsFunc(s.marks, func(m mark) bool {
		return m.atomic && m.pos < pos && (m.end == 0 || pos < m.end)
	})
}
