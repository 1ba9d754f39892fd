package document_test

import (
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestWhatStandsBesideTheTextOfOpenDocuments(t *testing.T) {
	t.Parallel()
	annotation := `<office:annotation><dc:creator>Ana</dc:creator>` + textP("Is it?") + `</office:annotation>`
	picture := `<draw:frame><draw:image/><svg:title>photo.png</svg:title><svg:desc>the harbour</svg:desc></draw:frame>`
	object := `<draw:frame><draw:object xlink:href="./Object 1"/><draw:image/></draw:frame>`
	cell := func(s string) string { return "<table:table-cell>" + s + "</table:table-cell>" }
	row := func(cells string) string { return "<table:table-row>" + cells + "</table:table-row>" }
	chart := []string{"Object 1/content.xml", "<office:document-content" + odfNamespaces + "><office:body><office:chart>" +
		"<chart:chart><chart:title>" + textP("Sales") + "</chart:title><chart:plot-area><chart:axis><chart:title>" +
		textP("EUR") + "</chart:title></chart:axis></chart:plot-area><table:table>" + row(cell("")+cell(textP("North"))) +
		row(cell(textP("Jan"))+cell(textP("10"))) + "</table:table></chart:chart></office:chart></office:body>" +
		"</office:document-content>"}
	const table = "Chart: Sales (EUR)\n\n| | North |\n| --- | --- |\n| Jan | 10 |\n"
	masters := []string{"styles.xml", "<office:document-styles" + odfNamespaces + "><office:master-styles>" +
		"<style:master-page><style:header>" + textP("Secret") + "</style:header><style:footer>" + textP("3") +
		"</style:footer></style:master-page><style:master-page><style:header>" + textP("Secret") +
		"</style:header></style:master-page></office:master-styles></office:document-styles>"}
	testReads(t, document.ODT, []readCase{
		{"a comment with its author", odf("text", textP("x"+annotation)), "x[^1]\n\n[^1]: Comment by Ana: Is it?\n", nil},
		{"the alternative text of a picture", odf("text", textP("x "+picture)), "x [Picture: the harbour]\n", nil},
		{"a chart is a small table", odf("text", textP("x"+object), chart...), "x\n\n" + table, nil},
		{"headers stand at the end, once", odf("text", textP("x"), masters...), "x\n\nHeader: Secret\n", nil},
	})
	testReads(t, document.ODS, []readCase{
		{"a comment on a cell, and what is drawn, below the cells", odf("spreadsheet", `<table:table table:name="S">`+
			row(cell(textP("a"))+cell(textP("b")))+row(cell(textP("c"))+cell(annotation+textP("d")+object))+
			`</table:table>`, chart...), "## S\n\n| a | b |\n| --- | --- |\n| c | d |\n\n" + table +
			"\nComment by Ana on B2: Is it?\n", []int{1}},
	})
	placed := func(y, s string) string {
		return `<draw:frame svg:x="1cm" svg:y="` + y + `" svg:width="5cm" svg:height="1cm"><draw:text-box>` + textP(s) +
			`</draw:text-box></draw:frame>`
	}
	testReads(t, document.ODP, []readCase{
		{"shapes from top to bottom, then comments", odf("presentation", "<draw:page>"+placed("9cm", "low")+
			placed("20mm", "high")+annotation+"</draw:page>"), "## Slide 1\n\nhigh\n\nlow\n\nComment by Ana: Is it?\n",
			[]int{1}},
	})
}
