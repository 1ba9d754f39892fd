package document

import (
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Limits of texts that a page draws by forms at its end.
const (
	maxDrawn       = 1000 // of one page
	maxDrawnPoints = 300  // the height of one; a larger one is a part of the page
	boxPoints      = 30   // the height of a check box
)

// drawnText is a form within a page, which is a drawing of its own. Programs that flatten the fields of a page make
// such forms of them, and draw them behind everything else.
type drawnText struct {
	text string // without blanks, as PDFium extracts it
	at   box    // of the form
}

// takeDrawn takes the texts of forms out of the end of the page's own text, so that they can be put in their places. It
// takes none unless it finds each of them.
func (t *pdfText) takeDrawn(page requests.Page) (found []placed) {
	drawn := t.drawnAtEnd(page)
	chars := 0
	for _, d := range drawn {
		chars += len(utf16.Encode([]rune(d.text)))
		if d.text == "" && !t.hasAppearances && d.at.top-d.at.bottom <= boxPoints && d.at.right-d.at.left <= boxPoints {
			t.omitted.add("check box without text")
		}
	}
	first := t.beforeLast(chars)
	if chars == 0 {
		return nil
	}
	from := first
	for _, d := range drawn {
		if d.text == "" {
			continue
		}
		p, next, ok := t.take(d, from)
		if !ok {
			return nil
		}
		found, from = append(found, p), next
	}
	if first == 0 && len(found) == 1 {
		return nil // the whole page is one form
	}
	own := t.text[:t.offset(first)]
	t.text = strings.TrimRight(own, " \r\n")
	t.count, t.boxes = first-(len(own)-len(t.text)), nil
	return found
}

// take returns a text that begins at a character, with its place, and the character behind it. ok is false if the page
// has another text there.
func (t *pdfText) take(d drawnText, from int) (p placed, next int, ok bool) {
	begin, want := from, []rune(d.text)
	for next = from; next < t.count && len(want) > 0; next++ {
		r := t.runeAt(next)
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			if begin == next {
				begin++
			}
			continue
		}
		if r != want[0] {
			return placed{}, 0, false
		}
		want = want[1:]
		if at, isChar := t.boxAt(next); isChar {
			p.at = p.at.or(at)
		}
	}
	got, err := t.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: t.page, StartIndex: begin, Count: next - begin})
	if err != nil || len(want) > 0 || p.at.top-p.at.bottom > maxDrawnPoints {
		return placed{}, 0, false
	}
	p.text, p.isDrawn = strings.TrimSpace(lineEnds.Replace(got.Text)), true
	p.at.top, p.at.bottom = p.at.top+slack, p.at.bottom-slack
	return p, next, true
}

// beforeLast returns how many characters stand before the last n that are no blanks.
func (t *pdfText) beforeLast(n int) int {
	if t.count > maxPageChars {
		return 0
	}
	i := t.count
	for ; i > 0 && n > 0; i-- {
		if r := t.runeAt(i - 1); !unicode.IsSpace(r) && !unicode.IsControl(r) {
			n--
		}
	}
	return i
}

func (t *pdfText) runeAt(i int) rune {
	got, err := t.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: t.page, Index: i})
	if err != nil {
		return 0
	}
	return rune(got.Unicode) //nolint:gosec // it is a code point
}

func (t *pdfText) boxAt(i int) (b box, ok bool) {
	found, err := t.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: t.page, Index: i})
	if err != nil {
		return box{}, false
	}
	b = box{found.Left, found.Bottom, found.Right, found.Top}
	return b, !b.isEmpty()
}

// drawnAtEnd returns the forms that a page draws after all else but lines, in their order.
func (t *pdfText) drawnAtEnd(page requests.Page) (all []drawnText) {
	counted, err := t.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: page})
	if err != nil {
		return nil
	}
	var forms []references.FPDF_PAGEOBJECT
	for i := counted.Count - 1; i >= max(0, counted.Count-maxDrawn); i-- {
		object, err := t.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: page, Index: i})
		if err != nil {
			break
		}
		kind := t.kindOf(object.PageObject)
		if kind != enums.FPDF_PAGEOBJ_FORM && kind != enums.FPDF_PAGEOBJ_PATH {
			break
		}
		if kind == enums.FPDF_PAGEOBJ_FORM {
			forms = append([]references.FPDF_PAGEOBJECT{object.PageObject}, forms...)
		}
	}
	left := maxDrawn
	for _, form := range forms {
		all = append(all, t.drawnIn(form, &left, 0)...)
	}
	return all
}

func (t *pdfText) kindOf(object references.FPDF_PAGEOBJECT) enums.FPDF_PAGEOBJ {
	kind, err := t.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})
	if err != nil {
		return enums.FPDF_PAGEOBJ_UNKNOWN
	}
	return kind.Type
}

// drawnIn returns the text of a form, or of each form in it if it has no text of its own. It takes each object that it
// looks at from left.
func (t *pdfText) drawnIn(form references.FPDF_PAGEOBJECT, left *int, depth int) (all []drawnText) {
	counted, err := t.FPDFFormObj_CountObjects(&requests.FPDFFormObj_CountObjects{PageObject: form})
	if err != nil || depth > maxObjectDepth {
		return nil
	}
	var text strings.Builder
	for i := 0; i < counted.Count && *left > 0; i++ {
		*left--
		within, err := t.FPDFFormObj_GetObject(&requests.FPDFFormObj_GetObject{PageObject: form, Index: uint64(i)})
		if err != nil {
			continue
		}
		switch t.kindOf(within.PageObject) {
		case enums.FPDF_PAGEOBJ_FORM:
			all = append(all, t.drawnIn(within.PageObject, left, depth+1)...)
		case enums.FPDF_PAGEOBJ_TEXT:
			text.WriteString(t.textOfObject(within.PageObject))
		}
	}
	if own := withoutBlanks(text.String()); own != "" || len(all) == 0 {
		all = append(all, drawnText{own, t.boundsOf(form)})
	}
	return all
}

func (t *pdfText) textOfObject(object references.FPDF_PAGEOBJECT) string {
	got, err := t.FPDFTextObj_GetText(&requests.FPDFTextObj_GetText{PageObject: object, TextPage: t.page})
	if err != nil {
		return ""
	}
	return got.Text
}

func (t *pdfText) boundsOf(object references.FPDF_PAGEOBJECT) box {
	got, err := t.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: object})
	if err != nil {
		return box{}
	}
	return box{float64(got.Left), float64(got.Bottom), float64(got.Right), float64(got.Top)}
}

func withoutBlanks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}
