package document

import (
	"math"
	"unicode"

	"github.com/klippa-app/go-pdfium/requests"
)

// Two characters stand on one line if they meet these limits, as shares of the height of the higher one. The height is
// that of the font's box, about 1.2 times its size.
const (
	maxRise  = 0.65 // how much one may stand above or below the other
	maxGap   = 1    // how far the second one may begin behind the first one
	maxBack  = 0.3  // how far it may begin before the first one's end
	blankGap = 0.17 // from here on there is a blank between them
)

// A number is raised above another one by at least minRise of its height, and at most maxSmall as high.
const (
	minRise  = 0.15
	maxSmall = 0.9
)

// joinRaised joins lines that PDFium breaks around signs above or below the line, as in H₂O and in m³. For PDFium a
// line ends where the text goes on higher or lower. It writes 10^6 for a number with a raised one, which PDFium shows
// as 106.
func (t *pdfText) joinRaised() {
	all := []rune(t.text)
	if len(all) != t.count || t.count > maxPageChars {
		return
	}
	var m lineMender
	var kept []int
	put := func(r rune, index int) {
		m.put(r, box{})
		kept = append(kept, index)
	}
	raised := t.exponents(all)
	mended := len(raised) > 0
	for begin := 0; begin < len(all); {
		end := begin
		for ; end < len(all) && !isLineEnd(all[end]); end++ {
			if raised[end] {
				put('^', -1)
			}
			put(all[end], end)
		}
		for begin = end; begin < len(all) && isLineEnd(all[begin]); begin++ {
		}
		joins, between := t.onOneLine(all, end, begin)
		mended = mended || joins
		for i := end; i < begin && !joins; i++ {
			put(all[i], i)
		}
		for _, r := range between {
			put(r, -1)
		}
	}
	if mended {
		t.text, t.count, t.boxes, t.offsets = m.b.String(), len(kept), nil, append(m.offsets, m.b.Len())
		t.kept = kept
	}
}

func isLineEnd(r rune) bool { return r == '\r' || r == '\n' }

// exponents returns the indices at which a raised number begins behind a number that is not raised.
func (t *pdfText) exponents(all []rune) map[int]bool {
	raised := map[int]bool{}
	for begin := 0; begin < len(all); begin++ {
		if !isDigit(all[begin]) {
			continue
		}
		end := begin
		for end+1 < len(all) && (isDigit(all[end+1]) || isSign(all[end+1]) && end+2 < len(all) && isDigit(all[end+2])) {
			end++
		}
		if at := t.exponent(begin, end); at > 0 {
			raised[at] = true
		}
		begin = end
	}
	return raised
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
func isSign(r rune) bool  { return r == '-' || r == '+' || r == '\u2212' }

// exponent returns the index at which digits and signs from begin to end are raised; 0 if none is, or all are.
func (t *pdfText) exponent(begin, end int) int {
	if begin == end {
		return 0
	}
	line, top := t.baseLine(begin), t.baseLine(end)
	if math.IsNaN(top-line) || top <= line {
		return 0
	}
	first, _, ok := t.cell(begin)
	last, _, found := t.cell(end)
	height := first.top - first.bottom
	if !ok || !found || top-line < minRise*height || last.top-last.bottom > maxSmall*height {
		return 0
	}
	for i := begin + 1; i < end; i++ {
		if t.baseLine(i)-line > (top-line)/2 {
			return i
		}
	}
	return end
}

// onOneLine reports whether what is around the line end from begin to end stands on one line, and what is missing
// between: a blank, the mark of a raised number, or nothing.
func (t *pdfText) onOneLine(all []rune, begin, end int) (joins bool, between string) {
	if begin == end || begin == 0 || end == len(all) {
		return false, ""
	}
	before, behind := begin-1, end
	for before > 0 && isBlankOnLine(all[before]) {
		before--
	}
	for behind < len(all)-1 && isBlankOnLine(all[behind]) {
		behind++
	}
	if isUnsure(all[before]) || isUnsure(all[behind]) {
		return false, ""
	}
	first, firstLine, ok := t.cell(before)
	second, secondLine, found := t.cell(behind)
	if !ok || !found {
		return false, ""
	}
	height := max(first.top-first.bottom, second.top-second.bottom)
	away := second.left - first.right
	if math.Abs(firstLine-secondLine) > maxRise*height || away > maxGap*height || away < -maxBack*height {
		return false, ""
	}
	low := min(first.top-first.bottom, second.top-second.bottom)
	switch {
	case before != begin-1 || behind != end:
	case away > blankGap*low:
		between = " "
	case isDigit(all[before]) && isDigit(all[behind]) && secondLine-firstLine > minRise*height && low < maxSmall*height:
		between = "^"
	}
	return true, between
}

func isBlankOnLine(r rune) bool { return unicode.IsSpace(r) && !isLineEnd(r) }

// isUnsure reports whether a character says nothing about a line that runs to the right.
func isUnsure(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == joint || isLeftward(r)
}

// cell returns the box of a character, as high as its font is, and its base line.
func (t *pdfText) cell(i int) (b box, line float64, ok bool) {
	found, err := t.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: t.page, Index: i})
	if err != nil {
		return box{}, 0, false
	}
	r := found.Rect
	b = box{float64(r.Left), float64(r.Bottom), float64(r.Right), float64(r.Top)}.turned(t.quarters)
	line = t.baseLine(i)
	return b, line, !b.isEmpty() && !math.IsNaN(line)
}

// baseLine returns where the base line of a character is; NaN if PDFium does not say.
func (t *pdfText) baseLine(i int) float64 {
	origin, err := t.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: t.page, Index: i})
	if err != nil {
		return math.NaN()
	}
	return box{origin.X, origin.Y, origin.X, origin.Y}.turned(t.quarters).bottom
}
