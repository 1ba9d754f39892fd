package document

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Limits of looking for the place of a text on its page, in characters.
const (
	maxPageChars = 50_000  // of one page
	maxChars     = 500_000 // of the pages of a document
)

// maxAnnotations is how many annotations of one page are read.
const maxAnnotations = 5000

// Distances on a page, in points.
const (
	slack      = 3   // two things may overlap by so much and yet stand beside each other
	bandPoints = 24  // the first line of a tall field is within so much of its top
	wordPoints = 8   // the words of a label are not further from each other
	nearPoints = 30  // a label is so near above its field
	farPoints  = 200 // a label is not so far from its box
)

// box is a rectangle on a page as it is read: y grows upwards, lines run from left to right.
type box struct{ left, bottom, right, top float64 }

func (b box) isEmpty() bool { return b.right-b.left < 0.1 || b.top-b.bottom < 0.1 } // a blank has no height
func (b box) has(c box) bool {
	return c.center() >= b.left && c.center() <= b.right && c.middle() >= b.bottom && c.middle() <= b.top
}

// or returns the smallest box around two boxes.
func (b box) or(c box) box {
	if b == (box{}) {
		return c
	}
	return box{min(b.left, c.left), min(b.bottom, c.bottom), max(b.right, c.right), max(b.top, c.top)}
}

func (b box) middle() float64    { return (b.bottom + b.top) / 2 }
func (b box) center() float64    { return (b.left + b.right) / 2 }
func (b box) firstLine() float64 { return max(b.bottom, b.top-bandPoints) }

// turned returns a box as it is read on a page with lines that run in another direction: upwards after one quarter of a
// turn, to the left after two, downwards after three.
func (b box) turned(quarters int) box {
	switch quarters {
	case 1:
		return box{b.bottom, -b.right, b.top, -b.left}
	case 2:
		return box{-b.right, -b.top, -b.left, -b.bottom}
	case 3:
		return box{-b.top, b.left, -b.bottom, b.right}
	}
	return b
}

// pdfText is the text of a page, as PDFium extracts it, with the places of its characters.
type pdfText struct {
	*pdf

	page     references.FPDF_TEXTPAGE
	text     string
	count    int   // characters
	boxes    []box // of each character; empty boxes for those that PDFium adds
	offsets  []int // of each character in the text, in bytes, and its length; nil: PDFium says them
	kept     []int // PDFium's index of each character, -1 for a blank that it lacks; nil: they are the same
	quarters int   // of a turn, by which most of the lines run in another direction than to the right

	drawn          []placed // texts of forms that were taken from the end of the text
	marks          string   // of pictures that OCR will read
	hasAppearances bool     // the text includes the drawings of annotations
}

// placed is a text that a page shows outside of its own text: the value of a field, or a remark typed on the page.
type placed struct {
	text  string
	name  string // of the field; empty: the text has none
	at    box
	isBox bool // a check box, which may stand on either side of its label

	isDrawn bool // the page's own text has it too, at its end
	isLink  bool // the target of a link, which belongs behind the text at its place
}

// locate reads the places of the page's characters. It reads none where the limits are exceeded.
func (t *pdfText) locate() {
	if t.count > maxPageChars || t.chars+t.count > maxChars {
		return
	}
	t.chars += t.count
	t.boxes = make([]box, t.count)
	for i := range t.boxes {
		index := i
		if t.kept != nil {
			index = t.kept[i]
		}
		found, err := t.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: t.page, Index: index})
		if err == nil && index >= 0 {
			t.boxes[i] = box{found.Left, found.Bottom, found.Right, found.Top}.turned(t.quarters)
		}
	}
}

// within returns the page's own text in a box that is not turned.
func (t *pdfText) within(b box) string {
	got, err := t.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{TextPage: t.page, Left: b.left, Top: b.top,
		Right: b.right, Bottom: b.bottom})
	if err != nil {
		return ""
	}
	return onOneLine(got.Text)
}

// with returns the page's text with other texts at their places. Those without a place follow as a list.
func (t *pdfText) with(all []placed) string {
	if len(all) > 0 && t.boxes == nil {
		t.locate()
	}
	if t.count == 0 {
		slices.SortStableFunc(all, func(a, b placed) int { return t.compare(a.at, b.at) })
	}
	type insertion struct {
		placed

		offset int
		side
	}
	var insertions []insertion
	var listed []string
	for _, p := range all {
		if !p.isDrawn && t.shows(p) {
			continue
		}
		after, side := t.placeOf(p)
		if side == nowhere {
			listed = append(listed, p.named())
			continue
		}
		p.at = p.at.turned(t.quarters)
		insertions = append(insertions, insertion{p, t.offset(after), side})
	}
	slices.SortStableFunc(insertions, func(a, b insertion) int {
		above := 0
		if a.side != onLine && b.side != onLine {
			above = cmp.Compare(b.at.top, a.at.top)
		}
		return cmp.Or(cmp.Compare(a.offset, b.offset), above, cmp.Compare(a.at.left, b.at.left))
	})
	var b strings.Builder
	last := 0
	for _, in := range insertions {
		offset := in.offset
		switch {
		case in.side == belowLine:
			offset += lineEndAt(t.text[offset:])
		case in.isLink:
			offset += wordEndAt(t.text[offset:])
		}
		offset = max(offset, last)
		b.WriteString(t.text[last:offset])
		last = offset
		insertText(&b, in.text, in.side != onLine, t.text[offset:])
	}
	b.WriteString(t.text[last:])
	if len(listed) > 0 {
		b.WriteString("\n\n" + strings.Join(listed, "\n"))
	}
	return b.String()
}

// compare says which of two boxes is read first.
func (t *pdfText) compare(a, b box) int {
	a, b = a.turned(t.quarters), b.turned(t.quarters)
	if a.isEmpty() || b.isEmpty() {
		return 0
	}
	if a.middle() >= b.bottom && a.middle() <= b.top {
		return cmp.Compare(a.left, b.left)
	}
	return cmp.Compare(b.top, a.top)
}

// named returns a text for a list, behind the name of its field.
func (p placed) named() string {
	if p.name == "" {
		return p.text
	}
	return p.name + ": " + p.text
}

// insertText writes a text between what b holds and what follows.
func insertText(b *strings.Builder, text string, newLine bool, following string) {
	before := " "
	switch held := b.String(); {
	case held == "" || strings.HasSuffix(held, "\n"):
		before = ""
	case newLine:
		before = "\n"
	case strings.HasSuffix(held, " "):
		before = ""
	}
	b.WriteString(before + text)
	switch {
	case newLine && following != "" && !strings.HasPrefix(strings.TrimPrefix(following, "\r"), "\n"):
		b.WriteString("\n")
	case !newLine && following != "" && !strings.ContainsAny(following[:1], " \r\n"):
		b.WriteString(" ")
	}
}

// lineEndAt returns the offset at which the first line of a text ends.
func lineEndAt(text string) int {
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		return end
	}
	return len(text)
}

// wordEndAt returns the offset at which the word ends that goes on at the beginning of a text. A link may end within
// it.
func wordEndAt(text string) int {
	isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }
	if end := strings.IndexFunc(text, isOther); end >= 0 {
		return end
	}
	return len(text)
}

// shows reports whether the page's own text has a text at its place, because a program drew it there too.
func (t *pdfText) shows(p placed) bool {
	text := onOneLine(p.text)
	return !p.at.isEmpty() && strings.Trim(text, "☐☒") != "" && strings.Contains(t.within(p.at), text)
}

// side says where a text belongs, seen from a character of the page.
type side int

const (
	nowhere   side = iota // the page does not say
	onLine                // behind the character
	belowLine             // on a line behind that of the character
	atTop                 // on a line before all others
)

// placeOf returns the number of characters after which a text belongs.
func (t *pdfText) placeOf(p placed) (after int, s side) {
	at := p.at.turned(t.quarters)
	if at.isEmpty() || len(t.boxes) == 0 {
		return 0, nowhere
	}
	if p.isLink {
		return t.behind(at)
	}
	before, behind := t.beside(at)
	switch {
	case before.found && (!p.isBox || !behind.found || before.distance <= behind.distance):
		return before.index + 1, onLine
	case behind.found && (p.isBox || behind.distance < farPoints):
		return behind.index, onLine
	}
	above := t.above(at, true)
	if above.found && above.distance <= nearPoints {
		return t.endOfLabel(above.index) + 1, onLine
	}
	if above = t.above(at, false); above.found {
		return above.index + 1, belowLine
	}
	return 0, atTop
}

// behind returns the number of characters up to the last one in a box.
func (t *pdfText) behind(at box) (after int, s side) {
	for i, char := range t.boxes {
		if !char.isEmpty() && at.has(char) {
			after, s = i+1, onLine
		}
	}
	return after, s
}

// nearestChar is the character that is nearest to a place in one direction.
type nearestChar struct {
	index    int
	distance float64
	found    bool
}

func (n *nearestChar) consider(index int, distance float64) {
	if !n.found || distance < n.distance {
		*n = nearestChar{index, distance, true}
	}
}

// beside returns the nearest characters on the line of a place: the one before it and the one behind it.
func (t *pdfText) beside(at box) (before, behind nearestChar) {
	for i, char := range t.boxes {
		if char.isEmpty() || char.middle() < at.firstLine() || char.middle() > at.top {
			continue
		}
		if char.right <= at.left+slack {
			before.consider(i, at.left-char.right)
		} else if char.left >= at.right-slack {
			behind.consider(i, char.left-at.right)
		}
	}
	return before, behind
}

// above returns the last character of the nearest line above a place. With column, it is the last one over the place.
func (t *pdfText) above(at box, column bool) (last nearestChar) {
	nearest := math.Inf(1)
	over := func(char box) bool {
		return !column || char.center() >= at.left-slack && char.center() <= at.right+slack
	}
	for _, char := range t.boxes {
		if !char.isEmpty() && char.middle() >= at.top && over(char) {
			nearest = min(nearest, char.middle()-at.top)
		}
	}
	for i, char := range t.boxes {
		distance := char.middle() - at.top
		if !char.isEmpty() && distance >= 0 && distance <= nearest+slack && over(char) {
			if !last.found || char.right > t.boxes[last.index].right {
				last = nearestChar{i, max(0, char.bottom-at.top), true}
			}
		}
	}
	return last
}

// endOfLabel returns the last character of the words on a line that begin with a character or contain it.
func (t *pdfText) endOfLabel(index int) int {
	for {
		next := nearestChar{}
		last := t.boxes[index]
		for i, char := range t.boxes {
			onLine := !char.isEmpty() && char.middle() >= last.bottom && char.middle() <= last.top
			if gap := char.left - last.right; onLine && char.center() > last.center() && gap <= wordPoints {
				next.consider(i, char.center()-last.center())
			}
		}
		if !next.found {
			return index
		}
		index = next.index
	}
}

// offset returns the bytes of the text that the first n characters take.
func (t *pdfText) offset(n int) int {
	if n == 0 {
		return 0
	}
	if t.offsets != nil {
		return t.offsets[min(n, len(t.offsets)-1)]
	}
	got, err := t.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: t.page, Count: n})
	if err != nil || !strings.HasPrefix(t.text, got.Text) {
		return len(t.text)
	}
	return len(got.Text)
}

// isHidden reports whether an annotation is not shown.
func (t *pdfText) isHidden(a references.FPDF_ANNOTATION) bool {
	flags, err := t.FPDFAnnot_GetFlags(&requests.FPDFAnnot_GetFlags{Annotation: a})
	return err == nil && flags.Flags&(enums.FPDF_ANNOT_FLAG_HIDDEN|enums.FPDF_ANNOT_FLAG_NOVIEW) != 0
}

// boxOf returns where an annotation is; an empty box if it does not say.
func (t *pdfText) boxOf(a references.FPDF_ANNOTATION) box {
	got, err := t.FPDFAnnot_GetRect(&requests.FPDFAnnot_GetRect{Annotation: a})
	if err != nil {
		return box{}
	}
	b := got.Rect
	return box{float64(min(b.Left, b.Right)), float64(min(b.Bottom, b.Top)), float64(max(b.Left, b.Right)),
		float64(max(b.Bottom, b.Top))}
}
