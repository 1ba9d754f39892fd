package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// chartPart returns a chart with a title, an axis and series. Each series is given by its name, its categories and its
// values; words are parted by blanks.
func chartPart(title, axis string, series ...[3]string) string {
	points := func(words string) string {
		var b strings.Builder
		for i, word := range strings.Fields(words) {
			fmt.Fprintf(&b, `<c:pt idx="%d"><c:v>%s</c:v></c:pt>`, i, word)
		}
		return b.String()
	}
	titled := func(s string) string {
		return "<c:title><c:tx><c:rich><a:p><a:r><a:t>" + s + "</a:t></a:r></a:p></c:rich></c:tx></c:title>"
	}
	var b strings.Builder
	for _, s := range series {
		b.WriteString("<c:ser><c:tx><c:strRef><c:f>S!$A$1</c:f><c:strCache>" + points(s[0]) +
			"</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:f>S!$A$2</c:f><c:strCache>" + points(s[1]) +
			"</c:strCache></c:strRef></c:cat>" +
			"<c:val><c:numRef><c:f>S!$B$2</c:f><c:numCache><c:formatCode>General</c:formatCode>" + points(s[2]) +
			"</c:numCache></c:numRef></c:val></c:ser>")
	}
	return "<c:chartSpace" + wordNamespaces + "><c:chart>" + titled(title) + "<c:plotArea><c:barChart>" + b.String() +
		"</c:barChart><c:valAx>" + titled(axis) + "</c:valAx></c:plotArea></c:chart></c:chartSpace>"
}

// diagramPart returns the data of a diagram: points by their ids, and links such as "upper lower 0".
func diagramPart(points []string, links ...string) string {
	var b strings.Builder
	for i := 0; i < len(points); i += 2 {
		fmt.Fprintf(&b, `<dgm:pt modelId="%s"><dgm:t>%s</dgm:t></dgm:pt>`, points[i], line("", points[i+1]))
	}
	b.WriteString(`<dgm:cxn type="presOf" srcId="clerk" destId="all"/>`)
	for _, link := range links {
		w := strings.Fields(link)
		fmt.Fprintf(&b, `<dgm:cxn srcId="%s" destId="%s" srcOrd="%s"/>`, w[0], w[1], w[2])
	}
	return "<dgm:dataModel" + wordNamespaces + ">" + b.String() + "</dgm:dataModel>"
}

const (
	salesTable = "Chart: Sales (EUR)\n\n| | North | South |\n| --- | --- | --- |\n| Jan | 10 | 20 |\n" +
		"| Feb | 15.5 | 0.3 |\n"
	chartFrame = `<a:graphic><a:graphicData><c:chart r:id="ch"/></a:graphicData></a:graphic>`
)

func salesChart() string {
	return chartPart("Sales", "EUR", [3]string{"North", "Jan Feb", "10 15.5"},
		[3]string{"South", "Jan Feb", "20 0.30000000000000004"})
}

func TestWordCommentsHeadersAndPictures(t *testing.T) {
	t.Parallel()
	links := func(all ...string) []string {
		return []string{"word/_rels/document.xml.rels", relations(all...)}
	}
	pictured := func(alternative string) string {
		return `<w:r><w:drawing><wp:inline><wp:docPr descr="` + alternative + `"/><a:graphic><pic:pic/></a:graphic>` +
			`</wp:inline></w:drawing></w:r>`
	}
	comments := []string{"word/comments.xml", wordPart("comments", `<w:comment w:id="7" w:author="Ana">`+
		para(run("Is it?"))+para(run("Ask."))+`</w:comment>`)}
	header := func(root, s string) string { return wordPart(root, para(run(s))) }
	testReads(t, document.DOCX, []readCase{
		{"a comment is a note with its author", docx(para(run("x"), `<w:r><w:commentReference w:id="7"/></w:r>`)+
			para(run("y")), comments...), "x[^1]\n\ny\n\n[^1]: Comment by Ana: Is it?\n    Ask.\n", nil},
		{"alternative texts of what is no picture", docx(para(run("x"), `<w:r><w:drawing><wp:docPr descr="an arrow"/>`+
			`<wps:wsp/></w:drawing></w:r>`) + para(`<w:r><w:drawing><wp:docPr descr="a frame"/><wps:wsp><w:txbxContent>`+
			para(run("boxed"))+`</w:txbxContent></wps:wsp></w:drawing></w:r>`) + `<w:tbl><w:tblPr>` +
			`<w:tblCaption w:val="Prices"/></w:tblPr><w:tr><w:tc>` + para(run("1")) + `</w:tc></w:tr></w:tbl>`),
			"x[Picture: an arrow]\n\nboxed\n\n[Alternative text: a frame]\n\n[Alternative text: Prices]\n\n1\n", nil},
		{"pages and texts that Word inserts", docx(para(run("x"))+`<w:altChunk r:id="h"/><w:altChunk r:id="m"/>`+
			`<w:altChunk r:id="t"/><w:altChunk r:id="d"/>`+para(run("y")), append(links("h", "aFChunk", "a.htm", "m", "aFChunk",
			"b.mht", "t", "aFChunk", "c.txt", "d", "aFChunk", "d.docx"), "word/a.htm", "<h2>Kelp</h2><p>66 t",
			"word/b.mht", "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n"+
				"Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>caf=E9\r\n--b--\r\n", "word/c.txt", "plain", "word/d.docx",
			"x")...), "x\n\n## Kelp\n\n66 t\n\ncafé\n\nplain\n\ny\n", nil},
		{"headers and footers stand at the end, each once", docx(para(run("x")), append(links("a", "header",
			"header1.xml", "b", "header", "header2.xml", "c", "footer", "footer1.xml", "d", "footer", "footer2.xml"),
			"word/header1.xml", header("hdr", "Secret"), "word/header2.xml", header("hdr", "Secret"), "word/footer1.xml",
			header("ftr", "Loci Ltd"), "word/footer2.xml", header("ftr", "12"))...),
			"x\n\nHeader: Secret\n\nFooter: Loci Ltd\n", nil},
		{"the alternative text of a picture", docx(para(run("x "), pictured("the harbour"))),
			"x [Picture: the harbour]\n", nil},
		{"a file's name is no alternative text", docx(para(run("x"), pictured("IMG_1.jpeg"))), "x\n", nil},
		{"a chart is a small table", docx(para(run("x"), "<w:r><w:drawing><wp:inline>"+chartFrame+
			"</wp:inline></w:drawing></w:r>"), append(links("ch", "chart", "charts/chart1.xml"), "word/charts/chart1.xml",
			salesChart())...), "x\n\n" + salesTable,
			nil},
		{"a diagram is a list", docx(para(run("x"), `<w:r><w:drawing><wp:inline><a:graphic><dgm:relIds r:dm="d"/>`+
			`</a:graphic></wp:inline></w:drawing></w:r>`), append(links("d", "diagramData", "diagrams/data1.xml"),
			"word/diagrams/data1.xml",
			"<dgm:dataModel"+wordNamespaces+"><dgm:pt><dgm:t>"+line("", "step")+"</dgm:t></dgm:pt><dgm:pt><dgm:t>"+
				line("", "next")+"</dgm:t></dgm:pt></dgm:dataModel>")...), "x\n\n- step\n- next\n", nil},
		{"a diagram keeps its levels", docx(para(run("x"), `<w:r><w:drawing><wp:inline><a:graphic><dgm:relIds r:dm="d"/>`+
			`</a:graphic></wp:inline></w:drawing></w:r>`), append(links("d", "diagramData", "diagrams/data1.xml"),
			"word/diagrams/data1.xml", diagramPart([]string{"all", "", "team", "Ana", "boss", "Ole", "clerk", "Eve", "other",
				"Max", "loop", "Ina"}, "all boss 1", "all other 2", "all team 0", "boss clerk 0", "loop loop 0"))...),
			"x\n\n- Ana\n- Ole\n  - Eve\n- Max\n- Ina\n", nil},
	})
}

// drawn returns a workbook with one sheet of cells and what is drawn on it.
func drawn(rows, drawing string, parts ...string) []byte {
	return xlsx([]sheet{{"S", "", rows}}, append(parts, "xl/worksheets/_rels/sheet1.xml.rels", relations("d", "drawing",
		"../drawings/drawing1.xml", "c", "comments", "../comments1.xml", "t", "threadedComment", "../threads1.xml",
		"v", "vmlDrawing", "../drawings/vml1.vml"),
		"xl/drawings/drawing1.xml", "<xdr:wsDr"+wordNamespaces+">"+drawing+"</xdr:wsDr>",
		"xl/drawings/_rels/drawing1.xml.rels", relations("ch", "chart", "../charts/chart1.xml"))...)
}

func TestWhatStandsOnASheetBesidesItsCells(t *testing.T) {
	t.Parallel()
	anchor := func(row int, what string) string {
		return fmt.Sprintf("<xdr:twoCellAnchor><xdr:from><xdr:col>0</xdr:col><xdr:row>%d</xdr:row></xdr:from>%s"+
			"</xdr:twoCellAnchor>", row, what)
	}
	textBox := func(s string) string { return "<xdr:sp><xdr:txBody>" + line("", s) + "</xdr:txBody></xdr:sp>" }
	chart := []string{"xl/charts/chart1.xml", salesChart()}
	notes := func(comments string) string {
		return `<comments xmlns="` + schemas + `spreadsheetml/2006/main"><authors><author>Bob</author>` +
			`<author>tc={1}</author></authors><commentList>` + comments + `</commentList></comments>`
	}
	note := func(cell, author, s string) string {
		return `<comment ref="` + cell + `" authorId="` + author + `"><text><r><t>` + s + `</t></r></text></comment>`
	}
	threads := `<ThreadedComments><threadedComment ref="B2" personId="p"><text>Sure?</text></threadedComment>` +
		`<threadedComment ref="B2" personId="q"><text>Yes.</text></threadedComment></ThreadedComments>`
	const head = "## S\n\n| a | b |\n| --- | --- |\n| c | d |\n\n"
	rows := cells("a", "b") + cells("c", "d")
	testReads(t, document.XLSX, []readCase{
		{"text boxes follow the cells from top to bottom", drawn(rows, anchor(9, textBox("low"))+anchor(2, textBox("high"))),
			head + "high\n\nlow\n", []int{1}},
		{"a chart follows its cells", drawn(rows, anchor(2, "<xdr:graphicFrame>"+chartFrame+"</xdr:graphicFrame>"), chart...),
			head + salesTable, []int{1}},
		{"a sheet with only a chart", drawn("", anchor(2, "<xdr:graphicFrame>"+chartFrame+"</xdr:graphicFrame>"), chart...),
			"## S\n\n" + salesTable, []int{1}},
		{"a picture by its alternative text", drawn(rows, anchor(2, `<xdr:pic><xdr:nvPicPr><xdr:cNvPr descr="the logo"/>`+
			`</xdr:nvPicPr></xdr:pic>`)), head + "[Picture: the logo]\n", []int{1}},
		{"a chart and a shape with alternative texts", drawn(rows, anchor(2, `<xdr:graphicFrame>`+
			`<xdr:cNvPr descr="It grew."/>`+chartFrame+"</xdr:graphicFrame>")+
			anchor(9, `<xdr:sp><xdr:cNvPr descr="an arrow"/></xdr:sp>`), chart...),
			head + salesTable + "\n[Alternative text: It grew.]\n\n[Picture: an arrow]\n", []int{1}},
		{"notes on cells", drawn(rows, "", "xl/comments1.xml", notes(note("B2", "0", "Bob:\nis it d?"))),
			head + "Comment by Bob on B2: is it d?\n", []int{1}},
		{"boxes and buttons", drawn(rows, "", "xl/drawings/vml1.vml",
			`<xml xmlns:v="urn:schemas-microsoft-com:vml" `+
				`xmlns:x="urn:schemas-microsoft-com:office:excel"><v:shape><v:textbox><div><font>I agree</font></div></v:textbox>`+
				`<x:ClientData ObjectType="Checkbox"><x:Checked>1</x:Checked></x:ClientData></v:shape><v:shape><v:textbox><div>`+
				`Send</div></v:textbox><x:ClientData ObjectType="Button"/></v:shape><v:shape><v:textbox/>`+
				`<x:ClientData ObjectType="Note"/></v:shape></xml>`), head + "☒ I agree\nSend\n", []int{1}},
		{"threads, without the notes that stand for them", drawn(rows, "", "xl/comments1.xml", notes(note("B2", "1",
			"[Threaded comment] Your version of Excel allows you to read this")), "xl/threads1.xml", threads),
			head + "Comment on B2: Sure?\n\nComment on B2: Yes.\n", []int{1}},
	})
}

func TestAWorkbookWithoutTextSaysWhatItHolds(t *testing.T) {
	t.Parallel()
	testRefusals(t, document.XLSX, []refusal{
		{"only a picture", drawn("", "<xdr:twoCellAnchor><xdr:pic/></xdr:twoCellAnchor>"),
			"only what is not read: 1 picture without text (sheet S). Upload a version with text, made by OCR for instance."},
		{"only a hidden sheet", xlsx([]sheet{{"One", `state="hidden"`, cells("a")}, {"Two", "", ""}}),
			"only what is not read: 1 hidden sheet (sheet One)."},
		{"nothing", xlsx([]sheet{{"One", "", ""}}), "The document holds no text."},
	})
}

func TestSlidesAreReadInOrder(t *testing.T) {
	t.Parallel()
	at := func(x, y, width, height int) string {
		return fmt.Sprintf(`<a:xfrm><a:off x="%d" y="%d"/><a:ext cx="%d" cy="%d"/></a:xfrm>`, x, y, width, height)
	}
	placed := func(frame, s string) string {
		return "<p:sp><p:spPr>" + frame + "</p:spPr><p:txBody>" + line("", s) + "</p:txBody></p:sp>"
	}
	pictured := func(frame, alternative string) string {
		return `<p:pic><p:nvPicPr><p:cNvPr descr="` + alternative + `"/></p:nvPicPr><p:spPr>` + frame + `</p:spPr></p:pic>`
	}
	slide := func(shapes ...string) []byte { return pptx([]string{strings.Join(shapes, "")}) }
	layout := []string{"ppt/slides/_rels/slide1.xml.rels", relations("l", "slideLayout", "../slideLayouts/l1.xml", "c",
		"comments", "../comments/c1.xml", "ch", "chart", "../charts/chart1.xml"),
		"ppt/slideLayouts/l1.xml", slidePart(`<p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="1"/></p:nvPr></p:nvSpPr>` +
			`<p:spPr>` + at(0, 500, 100, 100) + `</p:spPr></p:sp>`), "ppt/comments/c1.xml", `<p:cmLst xmlns:p="` + schemas +
			`presentationml/2006/main"><p:cm authorId="0"><p:pos x="1" y="1"/><p:text>Why?</p:text></p:cm></p:cmLst>`,
		"ppt/charts/chart1.xml", salesChart()}
	testReads(t, document.PPTX, []readCase{
		{"from top to bottom, and from left to right", slide(placed(at(600, 500, 100, 100), "4"),
			placed(at(600, 210, 100, 100), "2"), placed(at(0, 490, 100, 100), "3"), placed(at(0, 200, 100, 100), "1")),
			"## Slide 1\n\n1\n\n2\n\n3\n\n4\n", []int{1}},
		{"a column is read to its end", slide(placed(at(600, 200, 100, 600), "3"), placed(at(0, 600, 100, 100), "2"),
			placed(at(0, 210, 100, 100), "1"), placed(at(0, 0, 900, 100), "0")),
			"## Slide 1\n\n0\n\n1\n\n2\n\n3\n", []int{1}},
		{"a group is read as a whole", slide("<p:grpSp><p:grpSpPr>"+at(0, 500, 100, 100)+"</p:grpSpPr>"+
			placed(at(0, 60, 10, 10), "3")+placed(at(0, 20, 10, 10), "2")+"</p:grpSp>", placed(at(0, 200, 100, 100), "1")),
			"## Slide 1\n\n1\n\n2\n\n3\n", []int{1}},
		{"shapes without a place keep their order", slide(shape("", line("", "b")), shape("", line("", "a"))),
			"## Slide 1\n\nb\n\na\n", []int{1}},
		{"a placeholder stands where its layout puts it, and comments follow", pptx([]string{`<p:sp><p:nvSpPr><p:nvPr>` +
			`<p:ph idx="1"/></p:nvPr></p:nvSpPr><p:txBody>` + line("", "low") + `</p:txBody></p:sp>` +
			placed(at(0, 100, 100, 100), "high")}, layout...), "## Slide 1\n\nhigh\n\n- low\n\nComment: Why?\n", []int{1}},
		{"a picture by its alternative text", slide(pictured(at(0, 300, 9, 9), "the harbour"), placed(at(0, 0, 9, 9), "x")),
			"## Slide 1\n\nx\n\n[Picture: the harbour]\n", []int{1}},
		{"a chart and a group with alternative texts", pptx([]string{`<p:grpSp><p:cNvPr descr="Our sales"/><p:graphicFrame>` +
			`<p:cNvPr descr="It grew."/>` + chartFrame + "</p:graphicFrame></p:grpSp>" +
			`<p:sp><p:cNvPr descr="said twice"/><p:txBody>` + line("", "This is said twice.") + "</p:txBody></p:sp>"},
			layout...),
			"## Slide 1\n\n" + salesTable + "\n[Alternative text: It grew.]\n\n[Alternative text: Our sales]\n\n" +
				"This is said twice.\n\nComment: Why?\n", []int{1}},
		{"a chart is a small table", pptx([]string{"<p:graphicFrame>" + chartFrame + "</p:graphicFrame>"}, layout...),
			"## Slide 1\n\n" + strings.TrimSuffix(salesTable, "\n") + "\n\nComment: Why?\n", []int{1}},
	})
}
