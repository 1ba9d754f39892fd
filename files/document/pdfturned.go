package document

import (
	"math"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
)

// uprightText returns a page's own text, read in the direction of most of its lines. PDFium reads a page as it is
// shown, from top to bottom; a page that is shown turned would be read from its last line to its first.
func (r *pdf) uprightText(page requests.Page) (*pdfText, error) {
	t, err := r.textOf(page)
	if err != nil || t.count == 0 {
		return t, err
	}
	quarters := t.direction()
	shown, err := r.FPDFPage_GetRotation(&requests.FPDFPage_GetRotation{Page: page})
	if err == nil && int(shown.PageRotation) != quarters {
		_, err = r.FPDFPage_SetRotation(&requests.FPDFPage_SetRotation{Page: page,
			Rotate: enums.FPDF_PAGE_ROTATION(quarters)})
		if err == nil {
			t.close()
			t, err = r.textOf(page)
		}
	}
	t.quarters = quarters
	return t, err
}

// direction returns by how many quarters of a turn most of the page's lines are turned.
func (t *pdfText) direction() (quarters int) {
	var counts [4]int
	for i := 0; i < t.count; i += 1 + t.count/500 {
		angle, err := t.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: t.page, Index: i})
		if err == nil && angle.CharAngle >= 0 {
			clockwise := int(math.Round(float64(angle.CharAngle) / (math.Pi / 2)))
			counts[(8-clockwise)%4]++
		}
	}
	for i, n := range counts {
		if n > counts[quarters] {
			quarters = i
		}
	}
	return quarters
}

// textOf returns a page's own text. The caller closes it.
func (r *pdf) textOf(page requests.Page) (*pdfText, error) {
	t := &pdfText{pdf: r}
	loaded, err := r.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return t, err
	}
	t.page = loaded.TextPage
	counted, err := r.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: t.page})
	if err != nil || counted.Count == 0 {
		return t, err
	}
	t.count = counted.Count
	got, err := r.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: t.page, Count: t.count})
	if err == nil {
		t.text = got.Text
	}
	return t, err
}

// close frees the text; so does closing the document.
func (t *pdfText) close() {
	_, _ = t.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: t.page})
}
