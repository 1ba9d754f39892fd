package document

import (
	"fmt"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Limits of looking for pictures. A drawing may have a million lines.
const (
	maxPageObjects = 10_000  // of one page
	maxObjects     = 200_000 // of a document
	maxObjectDepth = 4       // objects within each other
)

// What a page may have that is not text.
const (
	pageDamaged    = "damaged page"
	pageIncomplete = "page that was not searched for pictures"
)

// omitFrom notes what a page has and its text does not. A page with objects and without text counts as one thing, for
// it is a scan or drawn letter by letter.
func (r *pdf) omitFrom(index int, t *pdfText, err error) {
	if err != nil {
		r.omitted.add(pageDamaged)
		return
	}
	counted, err := r.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: r.pageAt(index)})
	if err != nil || counted.Count == 0 {
		return
	}
	if isBlank(t.text) {
		r.omitted.add(pageUnread)
		r.unread = append(r.unread, index+1)
		return
	}
	pictures, left := 0, min(maxPageObjects, maxObjects-r.objects)
	looked := left
	for i := 0; i < counted.Count && left > 0; i++ {
		object, err := r.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: r.pageAt(index), Index: i})
		if err == nil {
			found := r.picturesIn(object.PageObject, &left, 0)
			if part := t.largePicture(object.PageObject, index); part != "" && found > 0 {
				found--
				t.marks += r.omitted.picture(part, false)
			}
			pictures += found
		}
	}
	r.objects += looked - left
	r.omitted.addAt(picture, r.omitted.at, pictures)
	if left == 0 {
		r.omitted.add(pageIncomplete)
	}
}

// A picture so large, in points, may hold text; one with so many characters of the page on it has a text already, as
// scans have that were read by OCR.
const (
	largeWidth  = 100
	largeHeight = 25
	fewChars    = 20
)

// largePicture returns where a picture is, for Ready.Picture, if it is large and no text lies on it. It returns "" for
// others.
func (t *pdfText) largePicture(object references.FPDF_PAGEOBJECT, index int) string {
	kind, err := t.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})
	if err != nil || kind.Type != enums.FPDF_PAGEOBJ_IMAGE {
		return ""
	}
	at, err := t.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: object})
	if err != nil {
		return ""
	}
	b := box{float64(at.Left), float64(at.Bottom), float64(at.Right), float64(at.Top)}
	if b.right-b.left < largeWidth || b.top-b.bottom < largeHeight || utf8.RuneCountInString(t.within(b)) >= fewChars {
		return ""
	}
	return fmt.Sprintf("%d %.1f %.1f %.1f %.1f", index+1, b.left, b.bottom, b.right, b.top)
}

// picturesIn counts the pictures in an object of a page. It takes each object that it looks at from left.
func (r *pdf) picturesIn(object references.FPDF_PAGEOBJECT, left *int, depth int) (pictures int) {
	if *left--; *left < 0 || depth > maxObjectDepth {
		return 0
	}
	kind, err := r.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})
	if err != nil || kind.Type != enums.FPDF_PAGEOBJ_FORM {
		if err == nil && kind.Type == enums.FPDF_PAGEOBJ_IMAGE {
			return 1
		}
		return 0
	}
	counted, err := r.FPDFFormObj_CountObjects(&requests.FPDFFormObj_CountObjects{PageObject: object})
	for i := 0; err == nil && i < counted.Count && *left > 0; i++ {
		within, err := r.FPDFFormObj_GetObject(&requests.FPDFFormObj_GetObject{PageObject: object, Index: uint64(i)})
		if err == nil {
			pictures += r.picturesIn(within.PageObject, left, depth+1)
		}
	}
	return pictures
}
