package chunker

import "cmp"

// A splitter cuts one text from start to end. Its outline has read the text up to the next body.
type splitter struct {
	text    string
	size    int
	overlap int
	count   func(string) int
	lines   bool // cut at lines rather than at sentences
	outline outline
	marks   []mark // the current window's marks
	span    int    // bytes of the last window
}

func newSplitter(text string, o Options) *splitter {
	s := &splitter{text: text, size: cmp.Or(max(o.SizeTokens, 0), DefaultSizeTokens), count: o.Count,
		lines: o.Kind == Code || o.Kind == Rows, outline: newOutline(o.Kind, text)}
	s.overlap = max(0, min(cmp.Or(o.OverlapTokens, DefaultOverlapTokens), s.size/2))
	s.span = 4 * s.size
	if s.count == nil {
		s.count = Estimate
	}
	return s
}

// headingAt returns the heading of a body that starts at from.
func (s *splitter) headingAt(from int) string {
	outline := s.outline.clone()
	if atLineStart(s.text, from) {
		l, _ := lineAt(s.text, from, from)
		outline.read(l)
	}
	return outline.heading()
}

// next returns the end of the body that starts at from, and whether a section starts at that end. It moves the outline
// to the end.
func (s *splitter) next(from int) (to int, section bool) {
	limit := s.reach(from)
	s.span = limit - from
	w := s.readWindow(from, limit)
	for to, section = s.balanced(w); s.count(s.text[from:to]) > s.size && to > runeEnd(s.text, from+1); {
		// A tokenizer may count more tokens in a shorter text, so this may take several rounds.
		w.limit = max(runeEnd(s.text, from+1), runeStart(s.text, to-1-(to-from)/8))
		to, section = s.cut(w)
	}
	s.advance(from, to)
	return to, section
}

// balanced cuts a window. It cuts earlier if otherwise little of the text or section would remain.
func (s *splitter) balanced(w window) (to int, section bool) {
	to, section = s.cut(w)
	end := s.sectionEnd(w.limit)
	if section || to >= end || end-to > s.span || s.count(s.text[to:end]) >= s.size/5 && to < w.trailing {
		return to, section
	}
	shorter := w
	top := min(w.content, w.limit)
	shorter.limit = runeStart(s.text, top+(end-top)*2/3)
	if shorter.limit <= w.from || shorter.limit >= w.limit {
		return to, section
	}
	return s.cut(shorter)
}

// sectionEnd returns the end of the section at limit if a mark shows it, else the end of the text.
func (s *splitter) sectionEnd(limit int) int {
	for _, m := range s.marks {
		if m.heading && m.rank != noCut && m.pos > limit {
			return m.pos
		}
	}
	return len(s.text)
}

// reach returns the end of the longest body that starts at from. The body has at least one rune.
func (s *splitter) reach(from int) int {
	weight := func(n int) int { return s.count(s.text[from:runeStart(s.text, from+n)]) }
	n := furthest(len(s.text)-from, s.span, s.size, weight)
	return max(runeStart(s.text, from+n), runeEnd(s.text, from+1))
}

// overlapBefore returns how many bytes before to the next chunk repeats; from is the start of the body that they end.
// The overlap starts at a line or a word if one starts in its first half, and not with a line break. Of rows, only
// whole rows are repeated.
func (s *splitter) overlapBefore(from, to int) int {
	if s.overlap == 0 || to == len(s.text) {
		return 0
	}
	guess := 1 + s.span*s.overlap/s.size
	weight := func(n int) int { return s.count(s.text[runeEnd(s.text, to-n):to]) }
	n := furthest(to-from, guess, s.overlap, weight)
	start := runeEnd(s.text, to-n)
	if first := s.firstRecord(start, to); first >= 0 {
		return to - first
	}
	half := start + (to-start)/2
	if i := firstLine(s.text, start, half); i >= 0 {
		start = i
	} else if i := firstWord(s.text, start, half); i >= 0 {
		start = i
	}
	for start < to && (s.text[start] == '\n' || s.text[start] == '\r') {
		start++
	}
	return to - start
}

// firstRecord returns the first start of a row in [start, to]. It returns -1 if no row starts at to.
func (s *splitter) firstRecord(start, to int) int {
	first := -1
	for _, m := range s.marks {
		if m.rank != record || m.pos < start || m.pos > to {
			continue
		}
		if first < 0 {
			first = m.pos
		}
		if m.pos == to {
			return first
		}
	}
	return -1
}

// furthest returns the greatest n ≤ most with weight(n) ≤ limit. weight must grow with n. It tries guess first.
func furthest(most, guess, limit int, weight func(n int) int) int {
	low, high := 0, most+1 // low fits, high does not
	for tries := 0; high-low > 1; tries++ {
		n := min(max(guess, low+1), high-1)
		w := weight(n)
		if w <= limit {
			low = n
		} else {
			high = n
		}
		guess = int(float64(n) * (float64(limit) + 0.5) / float64(max(w, 1)))
		if guess = min(guess, 2*n+8); tries > 3 && high <= most {
			guess = low + (high-low)/2
		}
	}
	return low
}

// advance moves the outline from one position of the text to a later one.
func (s *splitter) advance(from, to int) {
	for pos := firstLine(s.text, from, to); pos >= 0 && pos < to; {
		l, next := lineAt(s.text, pos, to)
		s.outline.read(l)
		pos = next
	}
}
