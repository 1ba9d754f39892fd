package document

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
)

// direction is how a character runs on its line.
type direction int

const (
	neutral   direction = iota // blanks and marks, which run as what is around them
	leftward                   // Hebrew and Arabic: from right to left
	rightward                  // other letters
	digits                     // which run from left to right everywhere
)

func directionOf(r rune) direction {
	p, _ := bidi.LookupRune(r)
	switch p.Class() {
	case bidi.R, bidi.AL:
		return leftward
	case bidi.L:
		return rightward
	case bidi.EN, bidi.AN:
		return digits
	}
	return neutral
}

// glyph is one sign of a line: a character, or several that are drawn as one.
type glyph struct {
	runes []rune
	at    box
	runs  direction
	order int  // in PDFium's text
	isGap bool // PDFium adds a blank behind it
}

func (g *glyph) isBlank() bool { return len(g.runes) == 1 && unicode.IsSpace(g.runes[0]) }

// mendDirections brings the characters of each line with Hebrew or Arabic into the order in which they are read. PDFium
// does that word by word: of several words that run to the left within other text, the last comes first. It has to
// guess the direction of a line by the number of words.
func (t *pdfText) mendDirections() {
	all := []rune(t.text)
	if len(all) != t.count || !slices.ContainsFunc(all, isLeftward) {
		return
	}
	if t.boxes == nil {
		t.locate()
	}
	if len(t.boxes) != len(all) {
		return
	}
	m := lineMender{majority: majority(all)}
	for begin := 0; begin < len(all); {
		end := begin
		for end < len(all) && all[end] != '\r' && all[end] != '\n' {
			end++
		}
		m.line(all[begin:end], t.boxes[begin:end])
		for begin = end; begin < len(all) && (all[begin] == '\r' || all[begin] == '\n'); begin++ {
			m.put(all[begin], t.boxes[begin])
		}
	}
	t.text, t.count, t.boxes, t.offsets = m.b.String(), len(m.boxes), m.boxes, append(m.offsets, m.b.Len())
}

func isLeftward(r rune) bool { return directionOf(r) == leftward }

// majority returns the direction of most letters.
func majority(all []rune) direction {
	n := 0
	for _, r := range all {
		switch directionOf(r) {
		case leftward:
			n++
		case rightward:
			n--
		}
	}
	if n > 0 {
		return leftward
	}
	return rightward
}

// lineMender collects the lines of a page.
type lineMender struct {
	majority direction
	b        strings.Builder
	boxes    []box
	offsets  []int // of each character, in bytes
}

func (m *lineMender) put(r rune, at box) {
	m.offsets, m.boxes = append(m.offsets, m.b.Len()), append(m.boxes, at)
	m.b.WriteRune(r)
}

func (m *lineMender) line(all []rune, boxes []box) {
	if !slices.ContainsFunc(all, isLeftward) {
		for i, r := range all {
			m.put(r, boxes[i])
		}
		return
	}
	glyphs := glyphsOf(all, boxes)
	pairBrackets(glyphs)
	for _, g := range m.inOrder(glyphs) {
		for _, r := range g.runes {
			m.put(r, g.at)
		}
	}
}

// glyphsOf returns the signs of a line from left to right, as a page shows them.
func glyphsOf(all []rune, boxes []box) (glyphs []glyph) {
	height := 0.0
	var marks []int
	for i, r := range all {
		width := boxes[i].right - boxes[i].left
		last := len(glyphs) - 1
		switch {
		case unicode.Is(unicode.Mn, r) && isLeftwardMark(r):
			marks = append(marks, i)
		case unicode.Is(unicode.Mn, r) && last >= 0:
			glyphs[last].add(r)
		case unicode.IsSpace(r) && width < 0.1:
			if last >= 0 {
				glyphs[last].isGap = true
			}
		case last >= 0 && !unicode.IsSpace(r) && boxes[i] == glyphs[last].at && !boxes[i].isEmpty():
			glyphs[last].add(r)
		default:
			glyphs = append(glyphs, glyph{runes: []rune{r}, at: boxes[i], runs: directionOf(r), order: len(glyphs)})
			height = max(height, boxes[i].top-boxes[i].bottom)
		}
	}
	for _, i := range marks {
		if letter := nearest(glyphs, boxes[i]); letter != nil {
			letter.add(all[i])
		} else {
			glyphs = append(glyphs, glyph{runes: []rune{all[i]}, at: boxes[i], order: len(glyphs)})
		}
	}
	slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.at.center(), b.at.center()) })
	for i := len(glyphs) - 1; i > 0; i-- {
		if before, behind := glyphs[i-1], glyphs[i]; isGap(before, behind, height) {
			at := box{before.at.right, before.at.bottom, behind.at.left, before.at.bottom}
			glyphs = slices.Insert(glyphs, i, glyph{runes: []rune{' '}, at: at})
		}
	}
	return glyphs
}

// isLeftwardMark reports whether a mark belongs to a letter of Hebrew or Arabic. Marks of other scripts, as of Thai and
// Hindi, stand behind their letters in PDFium's text.
func isLeftwardMark(r rune) bool { return r >= 0x0590 && r < 0x0900 || r >= 0xfb1d && r < 0xfe00 }

// nearest returns the letter that runs to the left and is nearest to a mark; nil if there is none.
func nearest(glyphs []glyph, mark box) *glyph {
	var found *glyph
	distance := math.Inf(1)
	for i := range glyphs {
		if away := math.Abs(glyphs[i].at.center() - mark.center()); glyphs[i].runs == leftward && away < distance {
			found, distance = &glyphs[i], away
		}
	}
	return found
}

// add adds a character that is drawn with others. PDFium reverses the two of an Arabic ligature, lam and alef.
func (g *glyph) add(r rune) {
	g.runes = append(g.runes, r)
	if last := len(g.runes) - 1; r == 'ل' && strings.ContainsRune("اأإآٱ", g.runes[last-1]) {
		g.runes[last-1], g.runes[last] = r, g.runes[last-1]
	}
}

// isGap reports whether a blank is missing between two signs beside each other on a line of a height.
func isGap(before, behind glyph, height float64) bool {
	const gap, smallGap = 0.3, 0.1 // of the height
	distance := (behind.at.left - before.at.right) / max(height, 1)
	switch {
	case before.isBlank() || behind.isBlank():
		return false
	case before.order+1 == behind.order:
		return before.isGap && distance > smallGap
	case behind.order+1 == before.order:
		return behind.isGap && distance > smallGap
	}
	return distance > gap
}

// pairBrackets makes brackets of a line open and close in turn, because PDFium mirrors some of them.
func pairBrackets(glyphs []glyph) {
	for _, pair := range []string{"()", "[]", "{}", "<>", "«»"} {
		signs := []rune(pair)
		var found []int
		for i, g := range glyphs {
			if len(g.runes) == 1 && slices.Contains(signs, g.runes[0]) {
				found = append(found, i)
			}
		}
		for n, i := range found {
			if len(found)%2 == 0 {
				glyphs[i].runes = []rune{signs[n%2]}
			}
		}
	}
}

// inOrder returns the signs of a line in the order in which they are read.
func (m *lineMender) inOrder(glyphs []glyph) []glyph {
	isLetter := func(g glyph) bool { return g.runs == leftward || g.runs == rightward }
	first := slices.IndexFunc(glyphs, isLetter)
	last := len(glyphs) - 1
	for last >= 0 && !isLetter(glyphs[last]) {
		last--
	}
	base := m.majority
	if first < 0 {
		return glyphs
	}
	if glyphs[first].runs == glyphs[last].runs {
		base = glyphs[first].runs
	}
	if base == leftward {
		turn(glyphs)
		keepRuns(glyphs, rightward)
		return glyphs
	}
	for begin := 0; begin < len(glyphs); begin++ {
		if glyphs[begin].runs != leftward {
			continue
		}
		end := begin
		for i := begin; i < len(glyphs) && glyphs[i].runs != rightward; i++ {
			if glyphs[i].runs == leftward {
				end = i
			}
		}
		begin = withNumber(glyphs, begin)
		turn(glyphs[begin : end+1])
		keepRuns(glyphs[begin:end+1], digits)
		begin = end
	}
	return glyphs
}

// withNumber returns where a run to the left begins if a number before it, on the page, belongs behind it: where
// nothing but a letter and a blank are before the number.
func withNumber(glyphs []glyph, begin int) int {
	i := begin - 1
	for i >= 0 && glyphs[i].isBlank() {
		i--
	}
	number := i
	for number >= 0 && isNumber(glyphs, number) {
		number--
	}
	if number == i || number < 1 || !glyphs[number].isBlank() || glyphs[number-1].runs != rightward {
		return begin
	}
	return number + 1
}

// isNumber reports whether a sign is a digit, or stands between two digits.
func isNumber(glyphs []glyph, i int) bool {
	isDigit := func(i int) bool { return i >= 0 && i < len(glyphs) && glyphs[i].runs == digits }
	return isDigit(i) || strings.ContainsRune(".,:/-", glyphs[i].runes[0]) && isDigit(i-1) && isDigit(i+1)
}

// turn reverses signs, and mirrors brackets among them.
func turn(glyphs []glyph) {
	slices.Reverse(glyphs)
	for i, g := range glyphs {
		if at := strings.IndexRune(mirrored, g.runes[0]); at >= 0 && len(g.runes) == 1 {
			signs := []rune(mirrored)
			n := slices.Index(signs, g.runes[0])
			glyphs[i].runes = []rune{signs[n^1]}
		}
	}
}

const mirrored = "()[]{}<>«»"

// keepRuns turns back what runs to the right among signs that were turned: numbers, and with rightward also letters
// with all between them.
func keepRuns(glyphs []glyph, what direction) {
	for begin := 0; begin < len(glyphs); begin++ {
		runs := glyphs[begin].runs
		if runs != digits && (runs != rightward || what != rightward) {
			continue
		}
		end := begin
		for i := begin + 1; i < len(glyphs); i++ {
			if glyphs[i].runs == leftward || what == digits && !isNumber(glyphs, i) {
				break
			}
			if glyphs[i].runs != neutral && (what != rightward || isNumber(glyphs, i) || glyphs[i].runs == rightward) {
				end = i
			}
		}
		turn(glyphs[begin : end+1])
		begin = end
	}
}
