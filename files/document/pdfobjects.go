package document

import (
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
func (r *pdf) omitFrom(index int, text string, err error) {
	if err != nil {
		r.omitted.add(pageDamaged)
		return
	}
	counted, err := r.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: r.pageAt(index)})
	if err != nil || counted.Count == 0 {
		return
	}
	if isBlank(text) {
		r.omitted.add(pageUnread)
		r.unread = append(r.unread, index+1)
		return
	}
	pictures, left := 0, min(maxPageObjects, maxObjects-r.objects)
	looked := left
	for i := 0; i < counted.Count && left > 0; i++ {
		object, err := r.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: r.pageAt(index), Index: i})
		if err == nil {
			pictures += r.picturesIn(object.PageObject, &left, 0)
		}
	}
	r.objects += looked - left
	r.omitted.addAt(picture, r.omitted.at, pictures)
	if left == 0 {
		r.omitted.add(pageIncomplete)
	}
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
