package document_test

import (
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestPPTXSlides(t *testing.T) {
	t.Parallel()
	notes := []string{"ppt/slides/_rels/slide1.xml.rels", relations("n", "notesSlide", "../notesSlides/n1.xml"),
		"ppt/notesSlides/n1.xml", slidePart(shape("sldImg", line("", "image")) + shape("body", line("", "say this"), line("",
			"and that")) +
			shape("sldNum", line("", "1")))}
	reversed := archive("ppt/presentation.xml", slidePart(`<p:sldIdLst><p:sldId id="256" r:id="b"/>`+
		`<p:sldId id="257" r:id="a"/><p:sldId r:id="b"/></p:sldIdLst>`),
		"ppt/_rels/presentation.xml.rels", relations("a", "slide", "slides/slide1.xml", "b", "slide",
			"/ppt/slides/slide2.xml"),
		"ppt/slides/slide1.xml", slidePart(shape("", line("", "last"))), "ppt/slides/slide2.xml", slidePart(shape("", line("",
			"first"))))
	testReads(t, document.PPTX, []readCase{
		{"slides are in the order of the presentation, each once", reversed, "## Slide 1\n\nfirst\n\n## Slide 2\n\nlast\n",
			[]int{1, 5}},
		{"a title and its slide", pptx([]string{shape("title", line("", "Tides"), line("", "and winds")) + shape("", line("",
			"x"))}),
			"## Slide 1: Tides and winds\n\nx\n", []int{1}},
		{"a second title is text", pptx([]string{shape("ctrTitle", line("", "A")) + shape("title", line("", "B"))}),
			"## Slide 1: A\n\nB\n", []int{1}},
		{"a title alone", pptx([]string{shape("title", line("", "A"))}), "## Slide 1: A\n", []int{1}},
		{"speaker notes are under their slide", pptx([]string{shape("title", line("", "A")), shape("", line("", "x"))},
			notes...),
			"## Slide 1: A\n\n### Notes\n\nsay this\n\nand that\n\n## Slide 2\n\nx\n", []int{1, 9}},
		{"footers and dates stand at the end, once, and numbers are left out", pptx([]string{
			shape("ftr", line("", "f")) + shape("dt", line("", "d")) + shape("sldNum", line("", "1")) +
				shape("", line("", "x")), shape("ftr", line("", "f")) + shape("", line("", "y"))}),
			"## Slide 1\n\nx\n\n## Slide 2\n\ny\n\nFooter: f\n\nDate: d\n", []int{1, 5}},
		{"a slide without text is a page without lines", pptx([]string{"<p:pic/>", shape("", line("", "x"))}),
			"## Slide 2\n\nx\n", []int{1, 1}},
		{"shapes in groups", pptx([]string{"<p:grpSp><p:grpSp>" + shape("", line("", "x")) + "</p:grpSp></p:grpSp>"}),
			"## Slide 1\n\nx\n", []int{1}},
		{"of two forms of a shape the first counts", pptx([]string{"<mc:AlternateContent><mc:Choice>" + shape("", line("",
			"x")) + "</mc:Choice><mc:Fallback>" +
			shape("", line("", "y")) + "</mc:Fallback></mc:AlternateContent>"}), "## Slide 1\n\nx\n", []int{1}},
		{"a diagram is a part of its own", pptx([]string{`<dgm:relIds r:dm="d"/>`}, "ppt/slides/_rels/slide1.xml.rels",
			relations("d", "diagramData", "../diagrams/data1.xml"), "ppt/diagrams/data1.xml",
			slidePart("<dgm:pt><dgm:t>"+line("", "step")+
				"</dgm:t></dgm:pt><dgm:pt><dgm:t>"+line("", "next")+"</dgm:t></dgm:pt>")), "## Slide 1\n\n- step\n- next\n",
			[]int{1}},
	})
}

func TestPPTXText(t *testing.T) {
	t.Parallel()
	link := []string{"ppt/slides/_rels/slide1.xml.rels", relations("h", "hyperlink", "https://example.org", "s", "slide",
		"slide2.xml")}
	look := func(attributes, properties, s string) string {
		return "<a:r><a:rPr " + attributes + ">" + properties + "</a:rPr><a:t>" + s + "</a:t></a:r>"
	}
	one := func(paragraphs ...string) []string { return []string{shape("", paragraphs...)} }
	body := func(paragraphs ...string) []string { return []string{shape("body", paragraphs...)} }
	level := func(n string) string { return `<a:pPr lvl="` + n + `"/>` }
	numbered := func(attributes, s string) string { return line("<a:pPr><a:buAutoNum "+attributes+"/></a:pPr>", s) }
	testReads(t, document.PPTX, []readCase{
		{"a body is a list", pptx(body(line("", "a"), line(level("1"), "b"), line("", "c"))),
			"## Slide 1\n\n- a\n  - b\n- c\n", []int{1}},
		{"levels may be left out", pptx(body(line("", "a"), line(level("3"), "b"), line(level("3"), "c"), line(level("1"),
			"d"))),
			"## Slide 1\n\n- a\n  - b\n  - c\n  - d\n", []int{1}},
		{"a paragraph without a bullet", pptx(body(line("<a:pPr><a:buNone/></a:pPr>", "a"), line("", "b"))),
			"## Slide 1\n\na\n\n- b\n", []int{1}},
		{"free text may have bullets", pptx(one(line(`<a:pPr><a:buChar char="•"/></a:pPr>`, "a"), line("", "b"))),
			"## Slide 1\n\n- a\n\nb\n", []int{1}},
		{"numbers count, and begin again after text", pptx(one(numbered("", "a"), numbered("", "b"), line("", "x"),
			numbered("", "c"))),
			"## Slide 1\n\n1. a\n2. b\n\nx\n\n1. c\n", []int{1}},
		{"numbers begin where they say", pptx(one(numbered(`startAt="5"`, "a"), numbered(`startAt="5"`, "b"))),
			"## Slide 1\n\n5. a\n6. b\n", []int{1}},
		{"a line break, a field and a tab", pptx(one("<a:p><a:r><a:t>a</a:t></a:r><a:br/><a:fld><a:t>b\tc</a:t></a:fld>" +
			"</a:p>")),
			"## Slide 1\n\na\nb c\n", []int{1}},
		{"struck and raised text, code", pptx(one("<a:p>" + look(`strike="sngStrike"`, "", "old") + look("", "", " 10") +
			look(`baseline="30000"`, "", "6") +
			look(`baseline="-25000"`, "", " low ") + look("", `<a:latin typeface="Consolas"/>`, "x") + "</a:p>")),
			"## Slide 1\n\n~~old~~ 10^6 low `x`\n", []int{1}},
		{"paragraphs of code are one block", pptx(one("<a:p>"+look("", `<a:latin typeface="Courier New"/>`, "a")+"</a:p>",
			"<a:p>"+look("", `<a:latin typeface="Courier New"/>`, "  b")+"</a:p>")), "## Slide 1\n\n```\na\n  b\n```\n",
			[]int{1}},
		{"links lead outside only", pptx(one("<a:p>"+look("", `<a:hlinkClick r:id="h"/>`, "there")+look("",
			`<a:hlinkClick r:id="s"/>`, " next")+"</a:p>"), link...),
			"## Slide 1\n\n[there](https://example.org) next\n", []int{1}},
		{"a formula", pptx(one("<a:p><m:oMath><m:r><m:t>E=m</m:t></m:r><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup>" +
			"<m:r><m:t>2</m:t></m:r></m:sup>" +
			"</m:sSup></m:oMath></a:p>")), "## Slide 1\n\nE=mc^2\n", []int{1}},
		{"a table", pptx([]string{"<a:tbl><a:tr><a:tc><a:txBody>" + line("", "a") + "</a:txBody></a:tc><a:tc><a:txBody>" +
			line("", "b") + line("", "c") +
			"</a:txBody></a:tc></a:tr><a:tr><a:tc/><a:tc><a:txBody>" + line("", "d|e") + "</a:txBody></a:tc></a:tr></a:tbl>"}),
			"## Slide 1\n\n| a | b<br>c |\n| --- | --- |\n| | d\\|e |\n", []int{1}},
	})
}

func TestPPTXRefusals(t *testing.T) {
	t.Parallel()
	testRefusals(t, document.PPTX, []refusal{
		{"a presentation of nothing", archive("ppt/presentation.xml", "<p/>"), "no text"},
		{"a slide that is missing", archive("ppt/presentation.xml", slidePart(`<p:sldId r:id="a"/>`),
			"ppt/_rels/presentation.xml.rels",
			relations("a", "slide", "slides/slide1.xml")), "damaged"},
		{"a slide that is cut", archive("ppt/presentation.xml", slidePart(`<p:sldId r:id="a"/>`),
			"ppt/_rels/presentation.xml.rels",
			relations("a", "slide", "slides/slide1.xml"), "ppt/slides/slide1.xml", "<p:sld><p:sp>"), "damaged"},
		{"no archive", []byte("hello"), "damaged"},
	})
}
