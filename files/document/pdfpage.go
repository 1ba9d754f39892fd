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
	objects int // objects of pages that were looked at
}

// pageAt returns a page by its index, from 0.
func (r *pdf) pageAt(index int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: r.doc, Index: index}}
}

// page returns the text of one page, and closes that text. The engine closes the page itself when the next page is
// loaded.
func (r *pdf) page(index int) (string, error) {
	text, err := r.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: r.pageAt(index)})
	if err != nil {
		return "", err
	}
	closing := &requests.FPDFText_ClosePage{TextPage: text.TextPage}
	defer r.FPDFText_ClosePage(closing) //nolint:errcheck // closed with the document
	counted, err := r.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text.TextPage})
	if err != nil || counted.Count == 0 {
		return "", err
	}
	got, err := r.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: text.TextPage, Count: counted.Count})
	if err != nil {
		return "", err
	}
	return got.Text, nil
}
