package document

import (
	"strings"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

const stamp = "stamp"

// annotated is what a page has besides its own text.
type annotated struct {
	placed      []placed
	links       []pageLink
	appearances []appearance
	notes       []string
}

// annotations reads the fields, the comments and the texts typed on a page. It notes what it leaves out.
func (t *pdfText) annotations(page requests.Page) (found annotated) {
	counted, err := t.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil || counted.Count == 0 {
		return annotated{}
	}
	defer t.openFields(page)()
	for i := range min(counted.Count, maxAnnotations) {
		got, err := t.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			continue
		}
		t.annotation(i, got.Annotation, &found)
		_, _ = t.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: got.Annotation}) // or with the document
	}
	t.omitted.addAt("annotation", t.omitted.at, counted.Count-maxAnnotations)
	return found
}

// annotation reads one annotation.
func (t *pdfText) annotation(index int, a references.FPDF_ANNOTATION, found *annotated) {
	got, err := t.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a})
	if err != nil {
		return
	}
	switch kind := got.Subtype; kind {
	case enums.FPDF_ANNOT_SUBTYPE_POPUP, enums.FPDF_ANNOT_SUBTYPE_PRINTERMARK, enums.FPDF_ANNOT_SUBTYPE_TRAPNET,
		enums.FPDF_ANNOT_SUBTYPE_XFAWIDGET: // they have no text of their own
	case enums.FPDF_ANNOT_SUBTYPE_LINK:
		t.link(a, &found.links)
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		p, ok := t.field(a)
		switch {
		case ok && t.isHidden(a):
			t.omitted.add("hidden field")
		case ok:
			p.at = t.boxOf(a)
			found.placed = append(found.placed, p)
		case !p.isBox:
			t.wordless(index, a, "", found)
		}
	case enums.FPDF_ANNOT_SUBTYPE_FREETEXT:
		if text := t.contents(a); text == "" {
			t.wordless(index, a, "", found)
		} else if !t.isHidden(a) {
			found.placed = append(found.placed, placed{text: text, at: t.boxOf(a)})
		}
	default:
		if note := t.note(a, kind); note != "" {
			found.notes = append(found.notes, note)
		} else if kind := wordlessKind(kind); kind != "" {
			t.wordless(index, a, kind, found)
		}
	}
}

// wordless notes an annotation without text. Its drawing may have one; else kind is left out.
func (t *pdfText) wordless(index int, a references.FPDF_ANNOTATION, kind string, found *annotated) {
	drawn, err := t.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: a, Key: "AP"})
	switch {
	case err == nil && drawn.HasKey && !t.isHidden(a) && (kind == "" || kind == stamp):
		found.appearances = append(found.appearances, appearance{index, t.boxOf(a), kind})
	case kind != "":
		t.omitted.add(kind)
	}
}

// contents returns what was typed into an annotation.
func (t *pdfText) contents(a references.FPDF_ANNOTATION) string {
	text := strings.TrimSpace(lineEnds.Replace(t.stringOf(a, "Contents")))
	if text == "" {
		if rich := t.stringOf(a, "RC"); rich != "" {
			plain, _ := HTML(rich)
			text = strings.TrimSpace(plain)
		}
	}
	return text
}

// wordlessKind says what an annotation without text is. It is empty for marks of the page's own text.
func wordlessKind(kind enums.FPDF_ANNOTATION_SUBTYPE) string {
	switch kind {
	case enums.FPDF_ANNOT_SUBTYPE_STAMP:
		return stamp
	case enums.FPDF_ANNOT_SUBTYPE_INK:
		return "drawing by hand"
	case enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT:
		return attachment
	case enums.FPDF_ANNOT_SUBTYPE_SOUND, enums.FPDF_ANNOT_SUBTYPE_MOVIE, enums.FPDF_ANNOT_SUBTYPE_SCREEN,
		enums.FPDF_ANNOT_SUBTYPE_RICHMEDIA:
		return media
	case enums.FPDF_ANNOT_SUBTYPE_THREED:
		return "3D model"
	}
	return ""
}

// note returns a comment in one paragraph: Comment by Ada on "the marked text": what she wrote. It is empty for an
// annotation without text.
func (t *pdfText) note(a references.FPDF_ANNOTATION, kind enums.FPDF_ANNOTATION_SUBTYPE) string {
	text := t.contents(a)
	if text == "" {
		return ""
	}
	note := "Comment"
	if author := onOneLine(t.stringOf(a, "T")); author != "" {
		note += " by " + author
	}
	switch kind {
	case enums.FPDF_ANNOT_SUBTYPE_HIGHLIGHT, enums.FPDF_ANNOT_SUBTYPE_UNDERLINE, enums.FPDF_ANNOT_SUBTYPE_SQUIGGLY,
		enums.FPDF_ANNOT_SUBTYPE_STRIKEOUT:
		if marked := t.marked(a); marked != "" {
			note += ` on "` + marked + `"`
		}
	case enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT:
		t.omitted.add(attachment)
	}
	return note + ": " + text
}

// marked returns the text that an annotation marks.
func (t *pdfText) marked(a references.FPDF_ANNOTATION) string {
	counted, err := t.FPDFAnnot_CountAttachmentPoints(&requests.FPDFAnnot_CountAttachmentPoints{Annotation: a})
	var texts []string
	for i := uint64(0); err == nil && i < min(counted.Count, 100); i++ {
		got, err := t.FPDFAnnot_GetAttachmentPoints(&requests.FPDFAnnot_GetAttachmentPoints{Annotation: a, Index: i})
		if err != nil {
			continue
		}
		q := got.QuadPoints
		texts = append(texts, t.within(box{
			float64(min(q.X1, q.X2, q.X3, q.X4)), float64(min(q.Y1, q.Y2, q.Y3, q.Y4)),
			float64(max(q.X1, q.X2, q.X3, q.X4)), float64(max(q.Y1, q.Y2, q.Y3, q.Y4)),
		}))
	}
	return onOneLine(strings.Join(texts, " "))
}
