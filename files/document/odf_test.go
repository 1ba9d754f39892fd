package document_test

import (
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// textP returns a paragraph of OpenDocument.
func textP(s string) string { return "<text:p>" + s + "</text:p>" }

// odfNote returns a footnote of OpenDocument.
func odfNote(body string) string {
	return "<text:note><text:note-citation>1</text:note-citation><text:note-body>" + body + "</text:note-body></text:note>"
}

func TestODTText(t *testing.T) {
	t.Parallel()
	styles := []string{"styles.xml", odfStyles(`<style:style style:name="Hidden" style:family="text">` +
		`<style:text-properties text:display="none"/></style:style>` +
		`<style:style style:name="Struck" style:family="text"><style:text-properties ` +
		`style:text-line-through-style="solid"/></style:style>` +
		`<style:style style:name="Bold" style:family="text" style:parent-style-name="Struck">` +
		`<style:text-properties style:text-line-through-style="none"/></style:style>` +
		`<style:style style:name="Up" style:family="text"><style:text-properties style:text-position="super 58%"/>` +
		`</style:style>` +
		`<style:style style:name="Mono" style:family="text"><style:text-properties style:font-name="Liberation Mono"/>` +
		`</style:style>` +
		`<style:style style:name="Quiet" style:family="paragraph"><style:text-properties text:display="none"/>` +
		`</style:style>` +
		`<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>` +
		`<style:style style:name="A" style:family="paragraph" style:parent-style-name="B"/>` +
		`<style:style style:name="B" style:family="paragraph" style:parent-style-name="A"/>`)}
	span := func(style, s string) string {
		return `<text:span text:style-name="` + style + `">` + s + `</text:span>`
	}
	p := func(style, s string) string { return `<text:p text:style-name="` + style + `">` + s + `</text:p>` }
	testReads(t, document.ODT, []readCase{
		{"paragraphs, blanks, tabs and line breaks", odf("text", textP(`a <text:s text:c="3"/>b<text:tab/>c`+
			`<text:line-break/>d`)+textP("")+textP("e")),
			"a b c\nd\n\ne\n", nil},
		{"spans by their style", odf("text", textP("10"+span("Up", "6")+" "+span("Struck", "old")+span("Hidden",
			"unseen")+" set "+span("Mono", "x")),
			styles...), "10^6 ~~old~~ set `x`\n", nil},
		{"a span within a span has both styles", odf("text", textP(span("Struck", "a"+span("Mono", "b"))), styles...),
			"~~a~~~~`b`~~\n", nil},
		{"a hidden paragraph is left out", odf("text", p("Quiet", "unseen")+textP("seen"), styles...), "seen\n", nil},
		{"code by its style, with the lines between", odf("text", p("P1", "a")+p("P1", "")+p("P1", "  b")+textP("c"),
			styles...),
			"```\na\n\n  b\n```\n\nc\n", nil},
		{"styles by names that programs use", odf("text", p("Title", "T")+p("Quotations", "q")+p("Source_20_Text", "code")),
			"# T\n\n> q\n\n```\ncode\n```\n", nil},
		{"styles that inherit from each other end", odf("text", p("A", "x"), styles...), "x\n", nil},
		{"headings by their level", odf("text", `<text:h text:outline-level="2">Two</text:h><text:h>One</text:h>`+
			`<text:h text:outline-level="99">Deep</text:h>`),
			"## Two\n\n# One\n\n###### Deep\n", nil},
		{"a link", odf("text", textP(`<text:a xlink:href="https://example.org">there</text:a> `+
			`<text:a xlink:href="#top">here</text:a>`)),
			"[there](https://example.org) here\n", nil},
		{"a paragraph is whole around its note", odf("text", textP("before"+odfNote(textP("the note"))+" after")),
			"before[^1] after\n\n[^1]: the note\n", nil},
		{"a note within a note has no mark", odf("text", textP("x"+odfNote(textP("a"+odfNote(textP("b")))))),
			"x[^1]\n\n[^1]: a\n", nil},
		{"a comment is a note, deleted text is left out",
			odf("text", `<text:tracked-changes>`+textP("old")+`</text:tracked-changes>`+
				textP(`a<office:annotation>`+textP("remark")+`</office:annotation>b`)),
			"a[^1]b\n\n[^1]: Comment: remark\n", nil},
		{"a table of contents is left out", odf("text", `<text:table-of-content>`+textP("One "+
			"1")+`</text:table-of-content>`+textP("One")), "One\n", nil},
		{"a section is read", odf("text", `<text:section>`+textP("a")+`</text:section>`), "a\n", nil},
		{"a text box stands after its paragraph", odf("text", textP(`a<draw:frame>`+
			`<draw:text-box>`+textP("box")+`</draw:text-box></draw:frame>b`)),
			"ab\n\nbox\n", nil},
		{"a formula is a document of its own", odf("text", textP(`x = <draw:frame><draw:object xlink:href="./Object 1"/>`+
			`</draw:frame>`), "Object 1/content.xml",
			`<math><semantics><mfrac><mi>a</mi><mrow><mn>1</mn><mn>0</mn></mrow></mfrac><msup><mi>b</mi><mn>2</mn></msup>`+
				`<msqrt><mi>c</mi></msqrt>`+
				`<annotation>a over 10</annotation></semantics></math>`), "x = a/(10)b^2√c\n", nil},
	})
}

func TestODTLists(t *testing.T) {
	t.Parallel()
	styles := []string{"styles.xml", odfStyles(`<text:list-style style:name="N"><text:list-level-style-number ` +
		`text:level="1" style:num-format="1" style:num-suffix="."/>` +
		`<text:list-level-style-number text:level="2" text:display-levels="2" style:num-format="a" style:num-prefix="(" ` +
		`style:num-suffix=")"/></text:list-style>` +
		`<text:list-style style:name="B"><text:list-level-style-bullet text:level="2"/></text:list-style>` +
		`<text:list-style style:name="R"><text:list-level-style-number text:level="1" text:start-value="4" ` +
		`style:num-format="i" style:num-suffix="."/></text:list-style>`)}
	list := func(attributes, items string) string {
		return "<text:list " + attributes + ">" + items + "</text:list>"
	}
	item := func(content string) string { return "<text:list-item>" + content + "</text:list-item>" }
	testReads(t, document.ODT, []readCase{
		{"a list within has its own marks, and leaves those around it", odf("text", list(`text:style-name="N"`,
			item(textP("one")+list(`text:style-name="B"`, item(textP("in")+list("", item(textP("deep"))))))+
				item(textP("two")+list(`text:style-name="B"`, item(textP("in"))))+item(textP("three"))), styles...),
			"1. one\n   - in\n     - deep\n2. two\n   - in\n3. three\n", nil},
		{"a list may continue the last", odf("text", list(`text:style-name="N"`, item(textP("a")))+textP("between")+
			list(`text:style-name="N" text:continue-numbering="true"`, item(textP("b"))), styles...),
			"1. a\n\nbetween\n\n2. b\n", nil},
		{"another list begins anew", odf("text", list(`text:style-name="N"`, item(textP("a")))+textP("between")+
			list(`text:style-name="N"`, item(textP("b"))), styles...), "1. a\n\nbetween\n\n1. b\n", nil},
		{"levels are shown together", odf("text", list(`text:style-name="N"`, item(textP("a")+list("",
			item(textP("b"))+item(textP("c"))))), styles...),
			"1. a\n   - (1.a) b\n   - (1.b) c\n", nil},
		{"a list starts where its style says", odf("text", list(`text:style-name="R"`, item(textP("a"))+item(textP("b"))),
			styles...), "- iv. a\n- v. b\n", nil},
		{"an item starts where it says", odf("text", list(`text:style-name="N"`,
			`<text:list-item text:start-value="7">`+textP("a")+`</text:list-item>`+
				item(textP("b"))), styles...), "7. a\n8. b\n", nil},
		{"an item of two paragraphs", odf("text", list("", item(textP("a")+textP("more"))+item(textP("b")))),
			"- a\n\n  more\n\n- b\n", nil},
		{"a header has no mark",
			odf("text", list("", "<text:list-header>"+textP("head")+"</text:list-header>"+item(textP("a")))),
			"head\n\n- a\n", nil},
		{"a heading in an item", odf("text", list("", item(`<text:h text:outline-level="1">H</text:h>`))), "# H\n", nil},
	})
}

func TestODTTablesAndPages(t *testing.T) {
	t.Parallel()
	cell := func(attributes, s string) string {
		return "<table:table-cell " + attributes + ">" + textP(s) +
			"</table:table-cell>"
	}
	row := func(attributes, cells string) string {
		return "<table:table-row " + attributes + ">" + cells +
			"</table:table-row>"
	}
	table := func(rows string) string { return "<table:table>" + rows + "</table:table>" }
	const soft = "<text:soft-page-break/>"
	paged := func(body string) []byte {
		return archive("content.xml", odfHead+`<office:text text:use-soft-page-breaks="true">`+body+"</office:text>"+odfTail)
	}
	testReads(t, document.ODT, []readCase{
		{"headers, groups and covered cells", odf("text", table("<table:table-header-rows>"+row("", cell("", "a")+cell("",
			"b"))+
			"</table:table-header-rows><table:table-row-group>"+row("", cell(`table:number-columns-spanned="2"`, "wide")+
			"<table:covered-table-cell/>")+"</table:table-row-group>")), "| a | b |\n| --- | --- |\n| wide |\n", nil},
		{"repeated rows and cells", odf("text", table(row("", cell("", "a")+cell("",
			"b"))+row(`table:number-rows-repeated="2"`,
			cell(`table:number-columns-repeated="2"`, "x")))), "| a | b |\n| --- | --- |\n| x | x |\n| x | x |\n", nil},
		{"a table in a cell is on its line", odf("text", table(row("", "<table:table-cell>"+table(row("", cell("",
			"a")+cell("", "b")))+
			"</table:table-cell>"+cell("", "c")))), "| a; b | c |\n| --- | --- |\n", nil},
		{"pages begin where they were laid out", paged(textP("one") + textP("two"+soft+" goes on") + soft + textP("three")),
			"one\n\ntwo goes on\n\nthree\n", []int{1, 5, 5}},
		{"page breaks that nobody laid out do not count", odf("text", textP("one")+soft+textP("two")), "one\n\ntwo\n", nil},
		{"a style may begin a page", paged(textP("one") + `<text:p text:style-name="Break">two` +
			`</text:p>`), "one\n\ntwo\n", nil},
	})
}

func TestODS(t *testing.T) {
	t.Parallel()
	cell := func(attributes, s string) string {
		return "<table:table-cell " + attributes + ">" + textP(s) +
			"</table:table-cell>"
	}
	stored := func(value string) string { return `<table:table-cell office:value-type="` + value + `"/>` }
	row := func(cells string) string { return "<table:table-row>" + cells + "</table:table-row>" }
	sheet := func(name, rows string) string {
		return `<table:table table:name="` + name + `">` + rows + "</table:table>"
	}
	hidden := `<office:automatic-styles><style:style style:name="ta2" style:family="table">` +
		`<style:table-properties table:display="false"/></style:style>` +
		`</office:automatic-styles>`
	withHidden := archive("content.xml", `<office:document-content`+odfNamespaces+`>`+hidden+`<office:body>`+
		`<office:spreadsheet>`+
		`<table:table table:name="H" table:style-name="ta2">`+row(cell("", "secret"))+`</table:table>`+sheet("S", row(cell("",
		"x")))+
		`</office:spreadsheet></office:body></office:document-content>`)
	testReads(t, document.ODS, []readCase{
		{"values without a text, and formulas without a value", odf("spreadsheet", sheet("A",
			row(stored(`date" office:date-value="2026-03-01`)+stored(`date" office:date-value="2026-03-01T14:05:00`)+
				stored(`time" office:time-value="PT07H45M00S`)+stored(`boolean" office:boolean-value="true`))+
				row(stored(`percentage" office:value="0.19`)+stored(`currency" office:currency="EUR" office:value="5`)+
					stored(`string" office:string-value="a`)+`<table:table-cell table:formula="of:=SUM([.A1:.A2])"/>`)+
				row(stored(`float" office:value="1.5`)+`<table:table-cell office:value-type="float" office:value="7"><text:p/>`+
					`</table:table-cell>`+cell("", "x")))),
			"## A\n\n| 2026-03-01 | 2026-03-01 14:05:00 | 07:45:00 | TRUE |\n| --- | --- | --- | --- |\n| 19% | 5 EUR | a | " +
				"=SUM([.A1:.A2]) |\n| 1.5 | | x |\n", []int{1}},
		{"sheets are pages", odf("spreadsheet", sheet("A", row(cell("", "a")+cell("", "b")))+sheet("B", row(cell("", "c")))),
			"## A\n\n| a | b |\n| --- | --- |\n\n## B\n\nc\n", []int{1, 6}},
		{"a hidden sheet is left out", withHidden, "## S\n\nx\n", []int{1}},
		{"an empty sheet has no page", odf("spreadsheet", sheet("A", row(""))+sheet("B", row(cell("", "c")))), "## B\n\nc\n",
			[]int{1}},
		{"a date is shown as it is displayed", odf("spreadsheet", sheet("A",
			row(cell(`office:value-type="date" office:date-value="2026-03-31"`, "31.03.26")))),
			"## A\n\n31.03.26\n", []int{1}},
		{"repeated empty cells before a full one", odf("spreadsheet", sheet("A", row(cell("",
			"a")+`<table:table-cell table:number-columns-repeated="2"/>`+
			cell("", "d"))+row(cell("", "e")+cell("", "f")))), "## A\n\n| a | | | d |\n| --- | --- | --- | --- |\n| e | f |\n",
			[]int{1}},
		{"empty cells up to the sheet's edge", odf("spreadsheet", sheet("A", row(cell("",
			"a")+`<table:table-cell table:number-columns-repeated="16383"/>`)+
			`<table:table-row table:number-rows-repeated="1048575"><table:table-cell `+
			`table:number-columns-repeated="16384"/></table:table-row>`)),
			"## A\n\na\n", []int{1}},
		{"a title above a table, and a note below", odf("spreadsheet", sheet("A", row(cell("", "Title"))+row(cell("",
			"a")+cell("", "b"))+
			row(cell("", "1")+cell("", "2"))+row("")+row(cell("", "note")))),
			"## A\n\nTitle\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nnote\n", []int{1}},
	})
}

func TestODP(t *testing.T) {
	t.Parallel()
	page := func(shapes string) string { return "<draw:page>" + shapes + "</draw:page>" }
	box := func(class, content string) string {
		return `<draw:frame presentation:class="` + class + `"><draw:text-box>` + content + `</draw:text-box></draw:frame>`
	}
	list := "<text:list><text:list-item>" + textP("a") + "</text:list-item></text:list>"
	testReads(t, document.ODP, []readCase{
		{"titles, lists and notes", odf("presentation", page(box("title", textP("One")+textP("more"))+box("outline", list)+
			"<presentation:notes>"+box("page", textP("1"))+box("notes", textP("say this"))+"</presentation:notes>")+page(box("",
			textP("x")))),
			"## Slide 1: One more\n\n- a\n\n### Notes\n\nsay this\n\n## Slide 2\n\nx\n", []int{1, 9}},
		{"footers and dates stand at the end, and numbers are left out", odf("presentation", page(
			box("footer", textP("f"))+box("date-time", textP("d"))+
				box("page-number", textP("1"))+box("header", textP("h"))+box("", textP("x")))),
			"## Slide 1\n\nx\n\nFooter: f\n\nDate: d\n\nHeader: h\n", []int{1}},
		{"a second title is text", odf("presentation", page(box("title", textP("One"))+box("title", textP("Two")))),
			"## Slide 1: One\n\nTwo\n", []int{1}},
		{"a slide without text is a page without lines", odf("presentation", page("<draw:frame/>")+page(box("", textP("x")))),
			"## Slide 2\n\nx\n", []int{1, 1}},
		{"shapes in groups, and a table", odf("presentation", page("<draw:g>"+
			"<draw:custom-shape>"+textP("x")+"</draw:custom-shape></draw:g>"+
			"<draw:frame><table:table><table:table-row><table:table-cell>"+textP("a")+"</table:table-cell>"+
			"<table:table-cell>"+textP("b")+
			"</table:table-cell></table:table-row></table:table></draw:frame>")),
			"## Slide 1\n\nx\n\n| a | b |\n| --- | --- |\n", []int{1}},
	})
}

func TestODFRefusals(t *testing.T) {
	t.Parallel()
	manifest := "<manifest:manifest" + odfNamespaces + "><manifest:file-entry><manifest:encryption-data/>" +
		"</manifest:file-entry></manifest:manifest>"
	testRefusals(t, document.ODT, []refusal{
		{"an encrypted document", archive("content.xml", "x", "META-INF/manifest.xml", manifest), "password"},
		{"one that is encrypted as a whole", archive("encrypted-package", "x"), "password"},
		{"another archive", archive("a.txt", "x"), "damaged"},
		{"a spreadsheet holds no text document", odf("spreadsheet", ""), "no text"},
		{"XML that is cut", archive("content.xml", odfHead+"<office:text>"+textP("a")), "damaged"},
		{"styles that are cut", odf("text", textP("a"), "styles.xml", "<office:document-styles"), "damaged"},
	})
}
