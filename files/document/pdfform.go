package document

import (
	"cmp"
	"strings"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"
)

// maxOptions is how many options of one field are looked at.
const maxOptions = 1000

// openForm makes the values of the document's form readable, if it has one.
func (r *pdf) openForm() {
	form, err := r.FPDF_GetFormType(&requests.FPDF_GetFormType{Document: r.doc})
	if err != nil || form.FormType == enums.FPDF_FORMTYPE_NONE {
		return
	}
	if form.FormType == enums.FPDF_FORMTYPE_XFA_FULL {
		r.omitted.addAt("XFA form", place{}, 1)
	}
	opened, err := r.FPDFDOC_InitFormFillEnvironment(&requests.FPDFDOC_InitFormFillEnvironment{
		Document: r.doc, FormFillInfo: structs.FPDF_FORMFILLINFO{
			FFI_Invalidate:   func(references.FPDF_PAGE, float64, float64, float64, float64) {},
			FFI_SetCursor:    func(enums.FXCT) {},
			FFI_SetTimer:     func(int, func(int)) int { return 0 },
			FFI_KillTimer:    func(int) {},
			FFI_GetLocalTime: func() structs.FPDF_SYSTEMTIME { return structs.FPDF_SYSTEMTIME{} },
			FFI_GetPage:      func(references.FPDF_DOCUMENT, int) *references.FPDF_PAGE { return nil },
			FFI_GetRotation: func(references.FPDF_PAGE) enums.FPDF_PAGE_ROTATION {
				return enums.FPDF_PAGE_ROTATION_NONE
			},
			FFI_ExecuteNamedAction: func(string) {},
		}})
	if err == nil {
		r.form = &opened.FormHandle
	}
}

// closeForm frees what openForm has opened.
func (r *pdf) closeForm() {
	if r.form != nil {
		_, _ = r.FPDFDOC_ExitFormFillEnvironment(&requests.FPDFDOC_ExitFormFillEnvironment{FormHandle: *r.form})
	}
}

// openFields makes the boxes and choices of a page readable, until closed.
func (r *pdf) openFields(page requests.Page) (closed func()) {
	if r.form == nil {
		return func() {}
	}
	_, err := r.FORM_OnAfterLoadPage(&requests.FORM_OnAfterLoadPage{Page: page, FormHandle: *r.form})
	if err != nil {
		return func() {}
	}
	return func() {
		_, _ = r.FORM_OnBeforeClosePage(&requests.FORM_OnBeforeClosePage{Page: page, FormHandle: *r.form})
	}
}

// field returns the value of a form's field. ok is false if it has none, or one that is not shown.
func (r *pdf) field(a references.FPDF_ANNOTATION) (p placed, ok bool) {
	if r.form == nil {
		return r.looseField(a)
	}
	kind, err := r.FPDFAnnot_GetFormFieldType(&requests.FPDFAnnot_GetFormFieldType{FormHandle: *r.form, Annotation: a})
	if err != nil || kind.FormFieldType == enums.FPDF_FORMFIELD_TYPE_UNKNOWN {
		return r.looseField(a)
	}
	switch kind.FormFieldType {
	case enums.FPDF_FORMFIELD_TYPE_PUSHBUTTON:
		return placed{isBox: true}, false
	case enums.FPDF_FORMFIELD_TYPE_SIGNATURE:
		return placed{}, false
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX, enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		p.isBox = true
		if p.text = "☐"; r.isChecked(a, kind.FormFieldType) {
			p.text = "☒"
		}
	case enums.FPDF_FORMFIELD_TYPE_COMBOBOX, enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		p.text = cmp.Or(r.chosen(a), r.fieldValue(a))
	default:
		if p.text = r.fieldValue(a); p.text != "" && r.isPassword(a) {
			r.omitted.add("password")
			return placed{isBox: true}, false
		}
	}
	p.text = strings.TrimSpace(lineEnds.Replace(p.text))
	p.name = r.fieldName(a)
	return p, p.text != ""
}

// looseField returns the value of a field that no form lists. Programs that put pages of several files together often
// leave their forms out.
func (r *pdf) looseField(a references.FPDF_ANNOTATION) (p placed, ok bool) {
	state, value := r.stringOf(a, "AS"), r.stringOf(a, "V")
	switch kind := r.stringOf(a, "FT"); {
	case kind == "Btn" || kind == "" && state != "":
		if state == "" && value == "" { // it may be a push button
			return placed{isBox: true}, false
		}
		p.isBox = true
		if p.text = "☒"; cmp.Or(state, value) == "Off" {
			p.text = "☐"
		}
	case kind == "Tx" || kind == "Ch":
		p.text = strings.TrimSpace(lineEnds.Replace(value))
	}
	p.name = onOneLine(r.stringOf(a, "T"))
	return p, p.text != ""
}

func (r *pdf) fieldName(a references.FPDF_ANNOTATION) string {
	name, err := r.FPDFAnnot_GetFormFieldName(&requests.FPDFAnnot_GetFormFieldName{FormHandle: *r.form, Annotation: a})
	if err != nil {
		return ""
	}
	return onOneLine(name.FormFieldName)
}

func (r *pdf) fieldValue(a references.FPDF_ANNOTATION) string {
	value, err := r.FPDFAnnot_GetFormFieldValue(&requests.FPDFAnnot_GetFormFieldValue{FormHandle: *r.form, Annotation: a})
	if err != nil {
		return ""
	}
	return value.FormFieldValue
}

// isPassword reports whether a text is shown as dots.
func (r *pdf) isPassword(a references.FPDF_ANNOTATION) bool {
	const password = 1 << 13
	got, err := r.FPDFAnnot_GetFormFieldFlags(&requests.FPDFAnnot_GetFormFieldFlags{FormHandle: *r.form, Annotation: a})
	return err == nil && got.Flags&password != 0
}

// isChecked reports whether a box is checked. Without an appearance the box itself does not say; then the value of its
// field decides.
func (r *pdf) isChecked(a references.FPDF_ANNOTATION, kind enums.FPDF_FORMFIELD_TYPE) bool {
	checked, err := r.FPDFAnnot_IsChecked(&requests.FPDFAnnot_IsChecked{FormHandle: *r.form, Annotation: a})
	if err == nil && checked.IsChecked {
		return true
	}
	drawn, err := r.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: a, Key: "AP"})
	if err != nil || drawn.HasKey {
		return false
	}
	value := cmp.Or(r.stringOf(a, "AS"), r.stringOf(a, "V"))
	if kind == enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON {
		exported, err := r.FPDFAnnot_GetFormFieldExportValue(&requests.FPDFAnnot_GetFormFieldExportValue{
			FormHandle: *r.form, Annotation: a})
		return err == nil && value != "" && exported.Value == value
	}
	return value != "" && value != "Off"
}

// chosen returns the labels of the options that are chosen.
func (r *pdf) chosen(a references.FPDF_ANNOTATION) string {
	counted, err := r.FPDFAnnot_GetOptionCount(&requests.FPDFAnnot_GetOptionCount{FormHandle: *r.form, Annotation: a})
	var labels []string
	for i := 0; err == nil && i < min(counted.OptionCount, maxOptions); i++ {
		selected, err := r.FPDFAnnot_IsOptionSelected(&requests.FPDFAnnot_IsOptionSelected{FormHandle: *r.form,
			Annotation: a, Index: i})
		if err != nil || !selected.IsOptionSelected {
			continue
		}
		label, err := r.FPDFAnnot_GetOptionLabel(&requests.FPDFAnnot_GetOptionLabel{FormHandle: *r.form, Annotation: a,
			Index: i})
		if err == nil {
			labels = append(labels, label.OptionLabel)
		}
	}
	return strings.Join(labels, ", ")
}
