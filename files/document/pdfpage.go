package document

import (
	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// pdf is an open PDF.
type pdf struct {
	pdfium.Pdfium

	doc     references.FPDF_DOCUMENT
	omitted omissions
	unread  []int                       // Text.Unread
	log     *PageLog                    // nil: nobody follows the reading
	objects int                         // objects of pages that were looked at
	chars   int                         // characters of pages that were looked at one by one
	form    *references.FPDF_FORMHANDLE // nil if the document has no form
}

// pageAt returns a page by its index, from 0.
func (r *pdf) pageAt(index int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: r.doc, Index: index}}
}

// stringOf returns a text of an annotation by its key.
func (r *pdf) stringOf(a references.FPDF_ANNOTATION, key string) string {
	got, err := r.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: a, Key: key})
	if err != nil {
		return ""
	}
	return got.Value
}
