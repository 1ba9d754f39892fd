package document_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestDOCXText(t *testing.T) {
	t.Parallel()
	link := []string{"word/_rels/document.xml.rels", relations("a", "hyperlink", "https://example.org/a",
		"b", "hyperlink", "javascript:alert(1)", "c", "hyperlink", "https://example.org/a(b) c")}
	testReads(t, document.DOCX, []readCase{
		{"paragraphs are parted by an empty line", docx(para(run("one")) + para() + para(run("two"))), "one\n\ntwo\n", nil},
		{"runs of one look are joined", docx(para(run("Lo"), run("ci"))), "Loci\n", nil},
		{"blanks around a text go, runs of blanks are one", docx(para(run("  a \t b\u00a0\u00a0c  "))), "a b c\n", nil},
		{"breaks and tabs within a paragraph", docx(para(run("a"), "<w:r><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r>")),
			"a\nb c\n", nil},
		{"a hyphen that does not break is one", docx(para("<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r>")),
			"e-mail\n", nil},
		{"struck, raised and hidden text", docx(para(run("10"), run("6", `<w:vertAlign w:val="superscript"/>`), run(" "),
			run("old", "<w:strike/>"), run("unseen", "<w:vanish/>"), run(" kept", `<w:strike w:val="0"/>`))),
			"10^6 ~~old~~ kept\n", nil},
		{"a raised word stays on the line", docx(para(run("1"), run("st", `<w:vertAlign w:val="superscript"/>`))),
			"1st\n", nil},
		{"a text in a code font", docx(para(run("set "), run("max_depth", `<w:rFonts w:ascii="Consolas"/>`), run("."))),
			"set `max_depth`.\n", nil},
		{"Monotype is no code font", docx(para(run("x y", `<w:rFonts w:ascii="Monotype Corsiva"/>`))), "x y\n", nil},
		{"paragraphs of code are one block", docx(para(run("if a:", `<w:rFonts w:ascii="Courier New"/>`)) +
			para(run("    b", `<w:rFonts w:ascii="Courier New"/>`)) + para(run("after"))),
			"```\nif a:\n    b\n```\n\nafter\n", nil},
		{"a link", docx(para(`<w:hyperlink r:id="a">`+run("there")+`</w:hyperlink>`, run(".")), link...),
			"[there](https://example.org/a).\n", nil},
		{"a link with blanks and brackets", docx(para(`<w:hyperlink r:id="c">`+run("there")+`</w:hyperlink>`), link...),
			"[there](<https://example.org/a(b) c>)\n", nil},
		{"a script is no link", docx(para(`<w:hyperlink r:id="b">`+run("there")+`</w:hyperlink>`), link...), "there\n", nil},
		{"a link without a target is text", docx(para(`<w:hyperlink r:id="z">` + run("there") + `</w:hyperlink>`)),
			"there\n", nil},
		{"a simple field leads to its address", docx(para(`<w:fldSimple w:instr=' HYPERLINK "https://example.org"'>` +
			run("x") + `</w:fldSimple>`)), "[x](https://example.org)\n", nil},
		{"a formula on one line", docx(para("<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2" +
			"</m:t></m:r></m:den></m:f><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup>" +
			"</m:sSup></m:oMath>")), "(a+b)/2x^2\n", nil},
		{"an old word art", docx(para(run("x"), `<w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:shape>`+
			`<v:textpath string="Draft"/></v:shape></w:pict></w:r>`)), "x\n\nDraft\n", nil},
		{"an equation without a result", docx(para(run("x = "), `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r>`+
			`<w:instrText> EQ \f(3,4) </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`)), "x = 3/4\n", nil},
		{"of ruby text the base is shown", docx(para("<w:r><w:ruby><w:rt>" + run("かん") + "</w:rt><w:rubyBase>" + run("漢") +
			"</w:rubyBase></w:ruby></w:r>")), "漢\n", nil},
		{"controlled content is read", docx("<w:sdt><w:sdtContent>" + para(run("a"),
			"<w:sdt><w:sdtContent>"+run("b")+"</w:sdtContent></w:sdt>") + "</w:sdtContent></w:sdt>"), "ab\n", nil},
		{"characters that XML does not have are repaired", docx(para(run("a\xff\u00adb"))), "a\ufffdb\n", nil},
	})
}

func TestDOCXTrackedChanges(t *testing.T) {
	t.Parallel()
	const deletedEnd = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
	testReads(t, document.DOCX, []readCase{
		{"inserted text is shown, deleted is not", docx(para("<w:ins>"+run("new ")+"</w:ins>",
			"<w:del><w:r><w:delText>old </w:delText></w:r></w:del>", run("text"))), "new text\n", nil},
		{"text that was moved stands where it went", docx(para("<w:moveFrom>"+run("gone ")+"</w:moveFrom>",
			"<w:moveTo>"+run("here")+"</w:moveTo>")), "here\n", nil},
		{"a paragraph whose end was deleted goes on", docx(para(deletedEnd, run("one ")) + para(run("two"))),
			"one two\n", nil},
		{"a deleted end before a table", docx(para(deletedEnd, run("one")) + "<w:tbl>" + tableRow("a", "b") + "</w:tbl>"),
			"one\n\n| a | b |\n| --- | --- |\n", nil},
		{"the last paragraph's end may be deleted", docx(para(deletedEnd, run("one"))), "one\n", nil},
		{"a deleted end in a cell does not leave the cell", docx("<w:tbl><w:tr><w:tc>" + para(deletedEnd, run("a")) +
			"</w:tc><w:tc>" + para(run("b")) + "</w:tc></w:tr></w:tbl>"), "| a | b |\n| --- | --- |\n", nil},
		{"former properties do not count", docx(para(`<w:pPr><w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr>`+
			`</w:pPrChange></w:pPr>`, run("plain"))), "plain\n", nil},
		{"a deleted row is left out", docx("<w:tbl>" + tableRow("a", "b") + "<w:tr><w:trPr><w:del/></w:trPr><w:tc>" +
			para(run("c")) + "</w:tc></w:tr></w:tbl>"), "| a | b |\n| --- | --- |\n", nil},
	})
}

// tableRow returns a row of a Word table.
func tableRow(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString("<w:tc>" + para(run(s)) + "</w:tc>")
	}
	return "<w:tr>" + b.String() + "</w:tr>"
}

func TestDOCXStyles(t *testing.T) {
	t.Parallel()
	styles := []string{"word/styles.xml", wordPart("styles", `<w:style w:styleId="berschrift2">`+
		`<w:name w:val="heading 2"/></w:style>`+
		`<w:style w:styleId="Sub"><w:name w:val="My heading"/><w:basedOn w:val="berschrift2"/></w:style>`+
		`<w:style w:styleId="T"><w:name w:val="Title"/></w:style><w:style w:styleId="C"><w:name w:val="toc 1"/></w:style>`+
		`<w:style w:styleId="Q"><w:name w:val="Intense Quote"/></w:style><w:style w:styleId="S">`+
		`<w:name w:val="Source Code"/></w:style>`+
		`<w:style w:styleId="V"><w:name w:val="Verbatim Char"/></w:style>`+
		`<w:style w:styleId="L1"><w:name w:val="l1"/><w:basedOn w:val="L2"/></w:style>`+
		`<w:style w:styleId="L2"><w:name w:val="l2"/><w:basedOn w:val="L1"/></w:style>`)}
	of := func(id, s string) string { return styled(`<w:pStyle w:val="`+id+`"/>`, s) }
	testReads(t, document.DOCX, []readCase{
		{"a style is what its name says, whatever its id", docx(of("berschrift2", "Zwei"), styles...), "## Zwei\n", nil},
		{"a style inherits", docx(of("Sub", "Drei"), styles...), "## Drei\n", nil},
		{"styles that inherit from each other end", docx(of("L1", "x"), styles...), "x\n", nil},
		{"a title is the first heading", docx(of("T", "Report"), styles...), "# Report\n", nil},
		{"a table of contents is left out", docx(of("C", "One 1")+para(run("One")), styles...), "One\n", nil},
		{"a quotation", docx(para(`<w:pPr><w:pStyle w:val="Q"/></w:pPr>`, run("a"), "<w:r><w:br/></w:r>", run("b")),
			styles...),
			"> a\n> b\n", nil},
		{"empty paragraphs stay within code", docx(of("S", "a")+para(`<w:pPr><w:pStyle w:val="S"/></w:pPr>`)+of("S", "b"),
			styles...),
			"```\na\n\nb\n```\n", nil},
		{"a style of characters", docx(para(run("see "), run("x", `<w:rStyle w:val="V"/>`)), styles...), "see `x`\n", nil},
		{"an unknown style is plain", docx(of("Nowhere", "x"), styles...), "x\n", nil},
		{"a heading has at most six marks", docx(styled(`<w:outlineLvl w:val="7"/>`, "deep")), "###### deep\n", nil},
		{"level ten is body text", docx(styled(`<w:outlineLvl w:val="9"/>`, "body")), "body\n", nil},
		{"a heading on two lines is on one", docx(para(`<w:pPr><w:outlineLvl w:val="0"/></w:pPr>`, run("a"),
			"<w:r><w:br/></w:r>", run("b"))), "# a b\n", nil},
	})
}

func TestDOCXLists(t *testing.T) {
	t.Parallel()
	level := func(n, format, text, start string) string {
		return `<w:lvl w:ilvl="` + n + `"><w:start w:val="` + start + `"/><w:numFmt w:val="` + format +
			`"/><w:lvlText w:val="` +
			text + `"/></w:lvl>`
	}
	num := func(id, abstract, more string) string {
		return `<w:num w:numId="` + id + `"><w:abstractNumId w:val="` + abstract + `"/>` + more + `</w:num>`
	}
	restart := `<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>`
	numbering := []string{"word/numbering.xml", wordPart("numbering",
		`<w:abstractNum w:abstractNumId="0">`+level("0", "bullet", "•", "1")+level("1", "bullet", " ",
			"1")+`</w:abstractNum>`+
			`<w:abstractNum w:abstractNumId="1">`+level("0", "decimal", "%1.", "1")+level("1", "lowerLetter", "(%2)", "1")+
			level("2", "decimal", "%1.%2.%3", "1")+`</w:abstractNum>`+
			`<w:abstractNum w:abstractNumId="2">`+level("0", "upperRoman", "%1.", "3999")+level("1", "decimalZero", "%2",
			"9")+`</w:abstractNum>`+
			`<w:abstractNum w:abstractNumId="3">`+level("0", "upperLetter", "%1)", "26")+level("99", "decimal", "%1",
			"1")+`</w:abstractNum>`+
			num("1", "0", "")+num("2", "1", "")+num("3", "1", restart)+num("4", "2", "")+num("5", "3", "")+num("6", "99", ""))}
	item := func(list, level, s string) string {
		return styled(`<w:numPr><w:ilvl w:val="`+level+`"/><w:numId w:val="`+list+`"/></w:numPr>`, s)
	}
	testReads(t, document.DOCX, []readCase{
		{"bullets within each other", docx(item("1", "0", "a")+item("1", "0", "b"), numbering...), "- a\n- b\n", nil},
		{"an item with a blank for a bullet continues the last", docx(item("1", "0", "a")+item("1", "1", "more"),
			numbering...),
			"- a\n\n  more\n", nil},
		{"numbers, letters and levels", docx(item("2", "0", "a")+item("2", "1", "b")+item("2", "1", "c")+item("2", "2", "d")+
			item("2", "0", "e"), numbering...), "1. a\n   - (a) b\n   - (b) c\n     - 1.b.1 d\n2. e\n", nil},
		{"text between items does not end a list", docx(item("2", "0", "a")+para(run("between"))+item("2", "0", "b"),
			numbering...),
			"1. a\n\nbetween\n\n2. b\n", nil},
		{"a list that starts again", docx(item("2", "0", "a")+item("3", "0", "b")+item("3", "0", "c"), numbering...),
			"1. a\n7. b\n8. c\n", nil},
		{"Roman numbers end at 3999", docx(item("4", "0", "a")+item("4", "0", "b"), numbering...),
			"- MMMCMXCIX. a\n4000. b\n", nil},
		{"two digits", docx(item("4", "1", "a")+item("4", "1", "b"), numbering...), "- 09 a\n- 10 b\n", nil},
		{"after Z comes AA", docx(item("5", "0", "a")+item("5", "0", "b"), numbering...), "- Z) a\n- AA) b\n", nil},
		{"an unknown list has bullets", docx(item("6", "0", "a")+item("77", "3", "b"), numbering...), "- a\n  - b\n", nil},
		{"list 0 is none", docx(item("0", "0", "a"), numbering...), "a\n", nil},
		{"a level beyond Word's is its last", docx(item("1", "99999", "a"), numbering...), "- a\n", nil},
		{"a heading has its number", docx(styled(`<w:outlineLvl w:val="0"/><w:numPr><w:ilvl w:val="0"/>`+
			`<w:numId w:val="2"/></w:numPr>`,
			"Intro"), numbering...), "# 1. Intro\n", nil},
	})
}

func TestDOCXTables(t *testing.T) {
	t.Parallel()
	cell := func(props, s string) string { return "<w:tc><w:tcPr>" + props + "</w:tcPr>" + para(run(s)) + "</w:tc>" }
	testReads(t, document.DOCX, []readCase{
		{"a table, its pipes and lines", docx("<w:tbl>" + tableRow("a", "b|c") + "<w:tr><w:tc>" + para(run("d")) +
			para(run("e")) +
			"</w:tc></w:tr></w:tbl>"), "| a | b\\|c |\n| --- | --- |\n| d<br>e |\n", nil},
		{"a row that is wider than the first", docx("<w:tbl>" + tableRow("a") + tableRow("b", "c") + "</w:tbl>"),
			"| a | |\n| --- | --- |\n| b | c |\n", nil},
		{"cells over columns and rows", docx("<w:tbl><w:tr>" + cell(`<w:gridSpan w:val="2"/>`, "wide") +
			cell(`<w:vMerge w:val="restart"/>`, "tall") +
			"</w:tr><w:tr>" + cell("", "a") + cell("", "b") + cell("<w:vMerge/>", "hidden") + "</w:tr></w:tbl>"),
			"| wide | | tall |\n| --- | --- | --- |\n| a | b |\n", nil},
		{"columns left out before a row", docx("<w:tbl>" + tableRow("a", "b") +
			`<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>` +
			cell("", "c") + "</w:tr></w:tbl>"), "| a | b |\n| --- | --- |\n| | c |\n", nil},
		{"empty rows go", docx("<w:tbl>" + tableRow("", "") + tableRow("a", "b") + tableRow(" ", "") + "</w:tbl>"),
			"| a | b |\n| --- | --- |\n", nil},
		{"a table of one cell is a box", docx("<w:tbl>" + tableRow("boxed") + "</w:tbl>"), "boxed\n", nil},
		{"a table in a cell is on its line", docx("<w:tbl><w:tr><w:tc>" + para(run("a")) + "<w:tbl>" + tableRow("b", "c") +
			"</w:tbl></w:tc>" +
			"<w:tc>" + para(run("d")) + "</w:tc></w:tr></w:tbl>"), "| a<br>b; c | d |\n| --- | --- |\n", nil},
		{"a heading in a cell has no mark", docx("<w:tbl><w:tr><w:tc>" + styled(`<w:outlineLvl w:val="0"/>`, "a") +
			"</w:tc><w:tc>" +
			para(run("b")) + "</w:tc></w:tr></w:tbl>"), "| a | b |\n| --- | --- |\n", nil},
	})
}

func TestDOCXNotesAndBoxes(t *testing.T) {
	t.Parallel()
	note := func(id, s string) string { return `<w:footnote w:id="` + id + `">` + para(run(s)) + `</w:footnote>` }
	cite := func(kind, id string) string { return `<w:r><w:` + kind + `Reference w:id="` + id + `"/></w:r>` }
	notes := []string{"word/footnotes.xml", wordPart("footnotes",
		`<w:footnote w:type="separator" w:id="0">`+para(run("---"))+
			`</w:footnote>`+note("1", "first")+note("2", "second")+`<w:footnote w:id="3">`+para(run("a"), cite("footnote", "1"))+
			para(run("b"))+`</w:footnote>`), "word/endnotes.xml", wordPart("endnotes",
		`<w:endnote w:id="1">`+para(run("end"))+`</w:endnote>`)}
	box := "<w:r><mc:AlternateContent><mc:Choice><w:drawing><w:txbxContent>" + para(run("box")) +
		"</w:txbxContent></w:drawing></mc:Choice>" +
		"<mc:Fallback><w:pict><w:txbxContent>" + para(run("box")) +
		"</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
	testReads(t, document.DOCX, []readCase{
		{"notes are numbered as they are cited", docx(para(run("x"), cite("footnote", "2"), run(" y"), cite("footnote", "1")),
			notes...),
			"x[^1] y[^2]\n\n[^1]: second\n[^2]: first\n", nil},
		{"a note that is cited twice is one", docx(para(run("x"), cite("footnote", "1"), run("y"), cite("footnote", "1")),
			notes...),
			"x[^1]y[^1]\n\n[^1]: first\n", nil},
		{"endnotes are counted with footnotes", docx(para(run("x"), cite("endnote", "1"), cite("footnote", "1")), notes...),
			"x[^1][^2]\n\n[^1]: end\n[^2]: first\n", nil},
		{"a note within a note has no mark", docx(para(run("x"), cite("footnote", "3")), notes...),
			"x[^1]\n\n[^1]: a\n    b\n", nil},
		{"a separator and a missing note are none", docx(para(run("x"), cite("footnote", "0"), cite("footnote", "9")),
			notes...), "x\n", nil},
		{"a note stands after code", docx(para(run("x"), cite("footnote", "1"))+para(run("y",
			`<w:rFonts w:ascii="Courier"/>`)), notes...),
			"x[^1]\n\n```\ny\n```\n\n[^1]: first\n", nil},
		{"of two forms of a text box the first counts", docx(para(box, run("beside"))), "beside\n\nbox\n", nil},
		{"a text box in a cell stays there", docx("<w:tbl><w:tr><w:tc>" + para(run("a"), box) + "</w:tc><w:tc>" +
			para(run("b")) +
			"</w:tc></w:tr></w:tbl>"), "| a<br>box | b |\n| --- | --- |\n", nil},
	})
}

func TestDOCXSymbols(t *testing.T) {
	t.Parallel()
	symbol := func(font, code string) string {
		return `<w:r><w:sym w:font="` + font + `" w:char="` + code + `"/></w:r>`
	}
	testReads(t, document.DOCX, []readCase{
		{"ticks and boxes", docx(para(run("Agree: "), symbol("Wingdings", "F0FE"), run(" yes "), symbol("Wingdings", "F0A8"),
			run(" no"))), "Agree: ☑ yes ☐ no\n", nil},
		{"signs of mathematics", docx(para(run("25 "), symbol("Symbol", "F0B0"), run("C, 5 "), symbol("Symbol", "F06D"),
			run("g, "), symbol("Symbol", "57"))), "25 °C, 5 μg, Ω\n", nil},
		{"a character of another font", docx(para(symbol("Arial", "00E9"), run("t"))), "ét\n", nil},
		{"a symbol that is not known", docx(para(run("a"), symbol("Webdings", "F061"), run("b"))), "ab\n", nil},
	})
}

func TestDOCXFields(t *testing.T) {
	t.Parallel()
	mark := func(kind string) string { return `<w:r><w:fldChar w:fldCharType="` + kind + `"/></w:r>` }
	old := func(data string) string {
		return `<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:name w:val="f"/>` + data + `</w:ffData></w:fldChar></w:r>`
	}
	instruction := func(s string) string { return "<w:r><w:instrText>" + s + "</w:instrText></w:r>" }
	testReads(t, document.DOCX, []readCase{
		{"a field is shown by its result, with its address", docx(para(mark("begin"),
			instruction(` HYPERLINK "https://example.org/a" `), mark("separate"), run("there"), mark("end"), run("."))),
			"[there](https://example.org/a).\n", nil},
		{"an instruction in two parts", docx(para(mark("begin"), instruction(`HYPERLINK "https://`),
			instruction(`example.org" \o "tip"`),
			mark("separate"), run("there"), mark("end"))), "[there](https://example.org)\n", nil},
		{"a field within a field", docx(para(mark("begin"), instruction(`HYPERLINK "https://example.org"`), mark("separate"),
			run("page "),
			mark("begin"), instruction("PAGE"), mark("separate"), run("7"), mark("end"), mark("end"))),
			"[page](https://example.org) 7\n", nil},
		{"boxes and choices of an old form", docx(para(run("Married: "), old(`<w:checkBox><w:default w:val="0"/>`+
			`<w:checked/></w:checkBox>`), run(" Tenant: "), old(`<w:checkBox><w:default w:val="0"/></w:checkBox>`),
			run(" Fruit: "), old(`<w:ddList><w:result w:val="1"/><w:listEntry w:val="Apple"/><w:listEntry w:val="Pear"/>`+
				`</w:ddList>`), mark("end"), mark("end"), mark("end"))), "Married: ☒ Tenant: ☐ Fruit: Pear\n", nil},
		{"an end without a beginning", docx(para(mark("end"), mark("separate"), run("x"))), "x\n", nil},
		{"a field that does not end", docx(para(mark("begin"), instruction("DATE"), mark("separate"), run("today")) +
			para(run("x"))),
			"today\n\nx\n", nil},
	})
}

func TestDOCXPages(t *testing.T) {
	t.Parallel()
	const broken = "<w:r><w:lastRenderedPageBreak/></w:r>"
	testReads(t, document.DOCX, []readCase{
		{"pages begin where they were laid out", docx(para(run("one")) + para(broken, run("two")) +
			para(run("three "), broken, run("and four")) + para(run("five"))), "one\n\ntwo\n\nthree and four\n\nfive\n", []int{1,
			3, 7}},
		{"a page may begin in a row", docx("<w:tbl>" + tableRow("a", "b") + "<w:tr><w:tc>" + para(broken, run("c")) +
			"</w:tc></w:tr></w:tbl>"),
			"| a | b |\n| --- | --- |\n| c |\n", []int{1, 3}},
		{"two pages may begin on one line", docx(para(run("a")) + para(broken) + para(broken, run("b"))), "a\n\nb\n", []int{1,
			3, 3}},
		{"a document of one page has none", docx(para(run("a"))), "a\n", nil},
	})
}

func TestDOCXParts(t *testing.T) {
	t.Parallel()
	elsewhere := `<Relationships><Relationship Id="r" ` +
		`Type="http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument" ` +
		`Target="/w/d2.xml"/></Relationships>`
	strict := strings.ReplaceAll(wordHead+para(run("strict"))+wordTail, schemas+"wordprocessingml/2006/main",
		"http://purl.oclc.org/ooxml/wordprocessingml/main")
	latin := `<?xml version="1.0" encoding="ISO-8859-1"?>` + wordHead + para(run("gr\xf6\xdfer")) + wordTail
	testReads(t, document.DOCX, []readCase{
		{"a part in UTF-16", archive("word/document.xml", utf16LE(`<?xml version="1.0" `+
			`encoding="UTF-16"?>`+wordHead+para(run("größer"))+wordTail)),
			"größer\n", nil},
		{"a part in Latin-1", archive("word/document.xml", latin), "größer\n", nil},
		{"a part with a byte order mark", archive("word/document.xml", "\ufeff"+wordHead+para(run("x"))+wordTail), "x\n",
			nil},
		{"the strict namespaces", archive("word/document.xml", strict), "strict\n", nil},
		{"other prefixes", archive("word/document.xml", `<d xmlns="`+schemas+`wordprocessingml/2006/main"><body><p><r>`+
			`<t>x</t></r></p></body></d>`),
			"x\n", nil},
		{"the main part is where the document says", archive("w/d2.xml", wordHead+para(run("x"))+wordTail, "_rels/.rels",
			elsewhere), "x\n", nil},
		{"names with backslashes are found", archive(`word\document.xml`, wordHead+para(run("x"))+wordTail), "x\n", nil},
		{"of two parts of a name the first counts", archive("word/document.xml", wordHead+para(run("1"))+wordTail,
			"word/document.xml", "<x/>"),
			"1\n", nil},
	})
}
