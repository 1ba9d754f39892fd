package document_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestFormsOfOpenDocuments(t *testing.T) {
	t.Parallel()
	const ns = ` xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0"`
	forms := `<office:forms` + ns + `><form:form>` +
		`<form:text xml:id="c1" form:id="c1" form:current-value="Novotna"/>` +
		`<form:checkbox form:id="c2" form:label="I agree" form:current-state="checked"/>` +
		`<form:checkbox form:id="c3" form:label="Send mail"/>` +
		`<form:radio form:id="c4" form:label="cash" form:selected="true"/>` +
		`<form:listbox form:id="c5"><form:option form:label="red"/><form:option form:label="green" ` +
		`form:selected="true"/></form:listbox>` +
		`<form:textarea form:id="c6">` + textP("two") + textP("lines") + `</form:textarea>` +
		`<form:password form:id="c7" form:current-value="hunter2"/>` +
		`<form:button form:id="c8" form:label="Send"/><form:fixed-text form:id="c9" form:label="Colour:"/>` +
		`</form:form></office:forms>`
	control := func(id string) string { return `<draw:control draw:control="` + id + `"/>` }
	body := textP("Name: "+control("c1")) + textP(control("c2")+" "+control("c3")+" "+control("c4")+control("c7")+
		control("c8")) + textP(control("c9")+" "+control("c5")) + control("c6")
	testReads(t, document.ODT, []readCase{{"values stand where the document draws them", odf("text", forms+body),
		"Name: Novotna\n\n☒ I agree ☐ Send mail ☒ cash\n\nColour: green\n\ntwo\nlines\n", nil}})
	testOmits(t, []omitCase{{"a password is named", openText, odf("text", forms+body), "1 password (paragraph 1)"}})
	testReads(t, document.ODS, []readCase{{"below the cells of a sheet", odf("spreadsheet", `<table:table table:name="S">`+
		forms+`<table:shapes>`+control("c2")+`</table:shapes><table:table-row><table:table-cell>`+textP("a")+
		`</table:table-cell></table:table-row></table:table>`), "## S\n\na\n\n☒ I agree\n", []int{1}}})
	testReads(t, document.ODP, []readCase{{"on a slide", odf("presentation", `<draw:page>`+forms+
		strings.Replace(control("c2"), "/>", ` svg:x="1cm" svg:y="1cm"/>`, 1)+`</draw:page>`),
		"## Slide 1\n\n☒ I agree\n", []int{1}}})
}
