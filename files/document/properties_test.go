package document_test

import (
	"bytes"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// What a document says of itself stands at its end, unless its text says it or a program filled it in.
func TestWhatDocumentsSayOfThemselves(t *testing.T) {
	t.Parallel()
	const dc = ` xmlns:dc="http://purl.org/dc/elements/1.1/"`
	core := func(elements string) []string {
		return []string{"docProps/core.xml", `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/` +
			`2006/metadata/core-properties"` + dc + ">" + elements + "</cp:coreProperties>"}
	}
	all := core("<dc:creator>Ana\nMarin</dc:creator><dc:title>Harbour rules</dc:title><cp:keywords>boats, piers" +
		"</cp:keywords><dc:subject>Ships</dc:subject><cp:lastModifiedBy>Ole</cp:lastModifiedBy>")
	const said = "Title: Harbour rules\n\nSubject: Ships\n\nAuthor: Ana Marin\n\nKeywords: boats, piers\n"
	testReads(t, document.DOCX, []readCase{
		{"of a Word document", docx(para(run("x")), all...), "x\n\n" + said, nil},
		{"not a title that the text has", docx(para(run("The HARBOUR ")+run("Rules of 2026")), core(
			"<dc:title>Harbour rules</dc:title>")...), "The HARBOUR Rules of 2026\n", nil},
		{"not the name of a file", docx(para(run("x")), core("<dc:title>rules-2.docx</dc:title>")...), "x\n", nil},
		{"not what a program filled in", docx(para(run("x")), core("<dc:creator>python-docx</dc:creator><dc:title>"+
			"Untitled</dc:title><dc:subject>(unspecified)</dc:subject>")...), "x\n", nil},
	})
	testReads(t, document.PPTX, []readCase{{"of a presentation", pptx([]string{shape("", line("", "x"))}, all...),
		"## Slide 1\n\nx\n\n" + said, []int{1}}})
	testReads(t, document.XLSX, []readCase{{"of a workbook", xlsx([]sheet{{"S", "", cells("a")}}, all...),
		"## S\n\na\n\n" + said, []int{1}}})
	meta := `<office:document-meta` + odfNamespaces + dc + `><office:meta><dc:creator>Ole</dc:creator>` +
		`<meta:initial-creator xmlns:meta="m">Ana</meta:initial-creator><meta:keyword xmlns:meta="m">boats</meta:keyword>` +
		`<meta:keyword xmlns:meta="m">piers</meta:keyword></office:meta></office:document-meta>`
	testReads(t, document.ODT, []readCase{{"of an OpenDocument", odf("text", textP("x"), "meta.xml", meta),
		"x\n\nAuthor: Ana\n\nKeywords: boats, piers\n", nil}})
	page := pdfPage{shown(50, 700, "Text."), []string{"<</Title(Microsoft Word - The rules)/Author(Ana)>>"}, ""}
	raw := bytes.Replace(pdfOf("", page, pdfPage{}), []byte("trailer<<"), []byte("trailer<</Info 10 0 R"), 1)
	testPDF(t, []pdfCase{{"of a PDF, on its last page", raw, "Text.\n\nTitle: The rules\nAuthor: Ana\n", ""}})
}

// A document without text stays one, whatever it says of itself.
func TestPropertiesAreNoText(t *testing.T) {
	t.Parallel()
	testRefusals(t, document.DOCX, []refusal{{"only a title", docx("", "docProps/core.xml",
		`<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>Harbour</dc:title></cp:coreProperties>`), "holds no text"}})
}
