package document

import (
	"slices"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
)

// appearance is an annotation that has no text but that of its drawing.
type appearance struct {
	index int // of the annotation
	at    box
	kind  string // what is left out if the drawing has no text either; empty: nothing
}

// withAppearances returns the text of a page with the drawings of some annotations behind it, and how it is closed. If
// the drawings cannot be read, that is the page's own text.
func (t *pdfText) withAppearances(page requests.Page, all []appearance) (shown *pdfText, closed func()) {
	closed = func() {}
	if len(all) == 0 || !t.flatten(page, all) {
		return t, closed
	}
	loaded, err := t.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: t.doc, Index: page.ByIndex.Index})
	if err != nil {
		return t, closed
	}
	shown, err = t.textOf(requests.Page{ByReference: &loaded.Page})
	shown.hasAppearances, shown.quarters = true, t.quarters
	closed = func() {
		shown.close()
		_, _ = t.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
	}
	if err != nil {
		closed()
		return t, func() {}
	}
	shown.drawn = shown.takeDrawn(requests.Page{ByReference: &loaded.Page})
	return shown, closed
}

// flatten makes the drawings of some annotations, and of no others, a part of the page.
func (t *pdfText) flatten(page requests.Page, all []appearance) bool {
	counted, err := t.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil || counted.Count > maxAnnotations {
		return false
	}
	for i := range counted.Count {
		if slices.ContainsFunc(all, func(a appearance) bool { return a.index == i }) {
			continue
		}
		got, err := t.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			return false
		}
		_, err = t.FPDFAnnot_SetFlags(&requests.FPDFAnnot_SetFlags{Annotation: got.Annotation,
			Flags: enums.FPDF_ANNOT_FLAG_HIDDEN})
		_, _ = t.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: got.Annotation}) // or with the document
		if err != nil {
			return false
		}
	}
	_, err = t.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: page})
	return err == nil
}

// omitWordless notes the annotations that are drawn without text.
func (t *pdfText) omitWordless(all []appearance) {
	for _, a := range all {
		hasText := func(p placed) bool { return a.at.has(p.at) }
		if a.kind != "" && !slices.ContainsFunc(t.drawn, hasText) {
			t.omitted.add(a.kind)
		}
	}
}
