package document_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
)

// claim is what a reader makes of a document that is written by hand, where no program at hand makes such.
type claim struct {
	read  document.Reader
	raw   []byte
	want  string
	pages []int
}

func TestReadersKeepWhatTheyPromise(t *testing.T) {
	t.Parallel()
	for _, table := range []map[string]claim{wordClaims(t), notebookClaims(), otherClaims(t)} {
		for name, c := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got, err := c.read(bytes.NewReader(c.raw), int64(len(c.raw)))
				if err != nil {
					t.Fatal(err)
				}
				checkMarkdown(t, got)
				if diff := cmp.Diff(c.want, got.Text); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !slices.Equal(got.Pages, c.pages) {
					t.Errorf("pages begin on lines %v, want %v", got.Pages, c.pages)
				}
			})
		}
	}
}

func wordClaims(t *testing.T) map[string]claim {
	said := func(s string) string { return "<w:r><w:t>" + s + "</w:t></w:r>" }
	para := func(s string) string { return "<w:p>" + s + "</w:p>" }
	doc := func(body string, parts ...string) []byte {
		all := entries{"word/document.xml": text(wordHead + body + wordTail)}
		for i := 0; i < len(parts); i += 2 {
			all[parts[i]] = text(parts[i+1])
		}
		return zipped(t, all)
	}
	deletedEnd := "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
	field := func(kind string) string { return `<w:r><w:fldChar w:fldCharType="` + kind + `"/></w:r>` }
	const broken = "<w:r><w:lastRenderedPageBreak/></w:r>"
	const namespaces = ` xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"`
	return map[string]claim{
		"text that was moved stands where it went": {document.DOCX,
			doc(para("<w:moveFrom>" + said("gone ") + "</w:moveFrom><w:moveTo>" + said("here") + "</w:moveTo>")), "here\n", nil},
		"a paragraph whose end was deleted goes on": {document.DOCX, doc(para(deletedEnd+said("one ")) + para(said("two"))), "one two\n", nil},
		"the last paragraph's end may be deleted":   {document.DOCX, doc(para(deletedEnd + said("one"))), "one\n", nil},
		"a deleted row is left out": {document.DOCX, doc("<w:tbl><w:tr><w:tc>" + para(said("a")) + "</w:tc><w:tc>" + para(said("b")) + "</w:tc></w:tr>" +
			"<w:tr><w:trPr><w:del/></w:trPr><w:tc>" + para(said("c")) + "</w:tc></w:tr></w:tbl>"), "| a | b |\n| --- | --- |\n", nil},
		"hidden text is left out": {document.DOCX,
			doc(para(said("seen") + "<w:r><w:rPr><w:vanish/></w:rPr><w:t>unseen</w:t></w:r>")), "seen\n", nil},
		"a field is shown by its result, with its address": {document.DOCX, doc(para(field("begin") +
			`<w:r><w:instrText> HYPERLINK "https://example.org/a" </w:instrText></w:r>` + field("separate") + said("there") + field("end") + said("."))),
			"[there](https://example.org/a).\n", nil},
		"of two forms of a text box the first counts": {document.DOCX, doc("<w:p" + namespaces + "><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>" +
			para(said("box")) + "</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>" + para(said("box")) +
			"</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>" + said("beside") + "</w:p>"), "beside\n\nbox\n", nil},
		"pages begin where they were laid out": {document.DOCX,
			doc(para(said("one")) + para(broken+said("two")) + para(said("three ")+broken+said("and four")) + para(said("five"))),
			"one\n\ntwo\n\nthree and four\n\nfive\n", []int{1, 3, 7}},
		"a table of contents is left out": {document.DOCX, doc(para(`<w:pPr><w:pStyle w:val="C"/></w:pPr>`+said("One 1"))+para(said("One")),
			"word/styles.xml", `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:styleId="C"><w:name w:val="toc 1"/></w:style></w:styles>`),
			"One\n", nil},
		"a style is what its name says, whatever its id": {document.DOCX, doc(para(`<w:pPr><w:pStyle w:val="berschrift2"/></w:pPr>`+said("Zwei")),
			"word/styles.xml", `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style></w:styles>`),
			"## Zwei\n", nil},
		"characters that XML has not are repaired": {document.DOCX, doc(para(said("a\xff\u00adb"))), "a\ufffdb\n", nil},
		"a part in UTF-16 is read": {document.DOCX, zipped(t, entries{"word/document.xml": inUTF16(
			`<?xml version="1.0" encoding="UTF-16"?>` + wordHead + para(said("größer")) + wordTail)}), "größer\n", nil},
		"the main part is where the document says": {document.DOCX, zipped(t, entries{"w/d2.xml": text(wordHead + para(said("x")) + wordTail),
			"_rels/.rels": text(`<Relationships><Relationship Id="r" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument" Target="/w/d2.xml"/></Relationships>`)}),
			"x\n", nil},
		"names with backslashes are found": {document.DOCX, zipped(t, entries{`word\document.xml`: text(wordHead + para(said("x")) + wordTail)}), "x\n", nil},
	}
}

func inUTF16(s string) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = w.Write([]byte{0xff, 0xfe})
		for _, r := range s {
			_, _ = w.Write([]byte{byte(r), byte(r >> 8)})
		}
	}
}

func notebookClaims() map[string]claim {
	return map[string]claim{
		"JSON that is no notebook is read as it is": {document.IPYNB, []byte("\ufeff{\"a\": [1,2],\r\n\"b\": \"é\"}\n"), "{\"a\": [1,2],\n\"b\": \"é\"}\n", nil},
		"a notebook of nbformat 3 has its cells in worksheets": {document.IPYNB, []byte(`{"nbformat":3,"worksheets":[{"cells":[
			{"cell_type":"heading","level":2,"source":["Tides"]},
			{"cell_type":"code","language":"python","input":"x = 1","outputs":[{"output_type":"pyout","text":["1"]}]}]}]}`),
			"## Tides\n\n```python\nx = 1\n```\n\n```\n1\n```\n", nil},
		"outputs lose their colours, and lines written over": {document.IPYNB, []byte(`{"cells":[{"cell_type":"code","source":["a\n","b"],"outputs":[
			{"output_type":"error","ename":"E","evalue":"bad","traceback":["\u001b[0;31mE\u001b[0m: bad"]},
			{"output_type":"stream","text":"10%\r50%\r100%\r\nend\n"},
			{"output_type":"display_data","data":{"image/png":"aGVsbG8=","text/plain":"<Figure>"}}]}]}`),
			"```\na\nb\n```\n\n```\nE: bad\n```\n\n```\n100%\nend\n```\n\n```\n<Figure>\n```\n", nil},
		"a fence is longer than those in it": {document.IPYNB, []byte("{\"cells\":[{\"cell_type\":\"code\",\"source\":\"```\"}," +
			"{\"cell_type\":\"markdown\",\"source\":\"a  \\n\\n\\n\\nb\\u0000\"}]}"), "````\n```\n````\n\na\n\nb\n", nil},
	}
}

const listStyles = `<office:document-styles xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" ` +
	`xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:styles>` +
	`<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/></text:list-style>` +
	`<text:list-style style:name="B"><text:list-level-style-bullet text:level="2"/></text:list-style></office:styles></office:document-styles>`

const styledLists = `<text:list text:style-name="N"><text:list-item><text:p>one</text:p><text:list text:style-name="B"><text:list-item><text:p>in</text:p>` +
	`<text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list></text:list-item></text:list></text:list-item>` +
	`<text:list-item><text:p>two</text:p><text:list text:style-name="B"><text:list-item><text:p>in</text:p></text:list-item></text:list></text:list-item>` +
	`<text:list-item><text:p>three</text:p></text:list-item></text:list><text:p>between</text:p>` +
	`<text:list text:style-name="N" text:continue-numbering="true"><text:list-item><text:p>four</text:p></text:list-item></text:list>`

func otherClaims(t *testing.T) map[string]claim {
	const odpHead = `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" ` +
		`xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>`
	const odpTail = `</office:text></office:body></office:document-content>`
	note := `<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>the note</text:p></text:note-body></text:note>`
	slide := func(body string) string {
		return `<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" ` +
			`xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" ` +
			`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">` + body + `</p:sld>`
	}
	relations := func(s string) func(io.Writer) { return text("<Relationships>" + s + "</Relationships>") }
	return map[string]claim{
		"a list within has its own marks, and leaves those around it": {document.ODT, zipped(t, entries{
			"styles.xml": text(listStyles), "content.xml": text(odpHead + styledLists + odpTail)}), "1. one\n   - in\n     - deep\n2. two\n   - in\n3. three\n\nbetween\n\n4. four\n", nil},
		"a paragraph is whole around its note": {document.ODT, zipped(t, entries{
			"content.xml": text(odpHead + "<text:p>before" + note + " after</text:p>" + odpTail)}), "before[^1] after\n\n[^1]: the note\n", nil},
		"slides are in the order of the presentation, diagrams on their slide": {document.PPTX, zipped(t, entries{
			"ppt/presentation.xml": text(slide(`<p:sldIdLst><p:sldId id="256" r:id="b"/><p:sldId id="257" r:id="a"/></p:sldIdLst>`)),
			"ppt/_rels/presentation.xml.rels": relations(`<Relationship Id="a" Type="t/slide" Target="slides/slide1.xml"/>` +
				`<Relationship Id="b" Type="t/slide" Target="/ppt/slides/slide2.xml"/>`),
			"ppt/slides/slide1.xml":            text(slide(`<dgm:relIds r:dm="d"/>`)),
			"ppt/slides/slide2.xml":            text(slide(`<p:sp><p:txBody><a:p><a:r><a:t>first</a:t></a:r></a:p></p:txBody></p:sp>`)),
			"ppt/slides/_rels/slide1.xml.rels": relations(`<Relationship Id="d" Type="t/diagramData" Target="../diagrams/data1.xml"/>`),
			"ppt/diagrams/data1.xml":           text(slide(`<dgm:pt><dgm:t><a:p><a:r><a:t>step</a:t></a:r></a:p></dgm:t></dgm:pt>`)),
		}), "## Slide 1\n\nfirst\n\n## Slide 2\n\n- step\n", []int{1, 5}},
		"a slide without text is a page without lines": {document.PPTX, zipped(t, entries{
			"ppt/presentation.xml": text(slide(`<p:sldId r:id="a"/><p:sldId r:id="b"/>`)),
			"ppt/_rels/presentation.xml.rels": relations(`<Relationship Id="a" Type="t/slide" Target="slides/slide1.xml"/>` +
				`<Relationship Id="b" Type="t/slide" Target="slides/slide2.xml"/>`),
			"ppt/slides/slide1.xml": text(slide(`<p:pic/>`)),
			"ppt/slides/slide2.xml": text(slide(`<p:sp><p:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></p:txBody></p:sp>`)),
		}), "## Slide 2\n\nx\n", []int{1, 1}},
		"a book is read in the order of its spine": {document.EPUB, zipped(t, entries{
			"META-INF/container.xml": text(`<container><rootfiles><rootfile full-path="OEBPS/p.opf"/></rootfiles></container>`),
			"META-INF/encryption.xml": text(`<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/>` +
				`</EncryptedData></encryption>`),
			"OEBPS/p.opf": text(`<package><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A Book</dc:title></metadata><manifest>` +
				`<item id="a" href="one%20a.xhtml" media-type="application/xhtml+xml"/><item id="b" href="b.xhtml" media-type="application/xhtml+xml"/>` +
				`<item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/></manifest>` +
				`<spine><itemref idref="n"/><itemref idref="b"/><itemref idref="a"/><itemref idref="missing"/></spine></package>`),
			"OEBPS/one a.xhtml": text(`<html><head><title>x1</title></head><body><h2>Second</h2><p>b</p></body></html>`),
			"OEBPS/b.xhtml":     text(`<html><head><title>x2</title></head><body><h2>First</h2><p>a</p></body></html>`),
			"OEBPS/nav.xhtml":   text(`<html><body><p>contents</p></body></html>`),
		}), "# A Book\n\n## First\n\na\n\n## Second\n\nb\n", nil},
	}
}

func TestLongSheetsAreRead(t *testing.T) {
	t.Parallel()
	raw := workbook(`<row><c t="inlineStr"><is><t>name</t></is></c><c><v>42</v></c><c t="b"><v>1</v></c></row>`, 50_000)(t)
	got, err := document.XLSX(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(got.Text, "| name | 42 | TRUE |\n"); rows != 50_000 {
		t.Errorf("%d rows of 50000, beginning %q", rows, got.Text[:min(len(got.Text), 200)])
	}
}
