package document_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
)

// omitCase is a document, with what its reader leaves out, in one line.
type omitCase struct {
	claim, mediaType string
	raw              []byte
	want             string
}

const (
	wordType   = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	powerPoint = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	excel      = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	jupyter    = "application/x-ipynb+json"
	openText   = "application/vnd.oasis.opendocument.text"
	openSheet  = "application/vnd.oasis.opendocument.spreadsheet"
)

func testOmits(t *testing.T, cases []omitCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			got, err := reader.Read(t.Context(), document.Input{MediaType: c.mediaType, SizeBytes: int64(len(c.raw)),
				Body: bytes.NewReader(c.raw)})
			if err != nil || got.Omitted == nil {
				t.Fatalf("got %v, %v", got.Omitted, err)
			}
			if diff := cmp.Diff(c.want, document.ListOmissions(got.Omitted)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, one := range got.Omitted {
				if err := one.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestReadersSayWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	drawing := func(within string) string {
		return `<w:r><w:drawing><pic:pic xmlns:pic="` + schemas + `drawingml/2006/picture">` + within +
			`</pic:pic></w:drawing></w:r>`
	}
	object := `<w:r><w:object><v:shape xmlns:v="urn:schemas-microsoft-com:vml"><v:imagedata/></v:shape></w:object></w:r>`
	toc := styled(`<w:pStyle w:val="TOC1"/>`, "One 1")
	video := `<p:pic><p:nvPicPr><p:nvPr><a:videoFile r:link="v"/></p:nvPr></p:nvPicPr></p:pic>`
	testOmits(t, []omitCase{
		{"nothing of a text", "text/plain", []byte("a\n"), ""},
		{"nothing of a document that is all read", wordType, docx(para(run("a"))), ""},
		{"pictures of a document", wordType, docx(para(run("a"), drawing("")) + para(drawing(""))),
			"2 pictures without text (paragraphs 1–2)"},
		{"pictures below headings", wordType, docx(para(drawing("")) + styled(`<w:outlineLvl w:val="0"/>`, "The harbour") +
			para(drawing("")) + para(run("a"), drawing("")) + styled(`<w:outlineLvl w:val="1"/>`, "Ships") + para(drawing(""))),
			"4 pictures without text (paragraph 1, sections The harbour, Ships)"},
		{"pictures in headers", wordType, docx(para(run("a")), "word/_rels/document.xml.rels", relations("a", "header",
			"header1.xml"), "word/header1.xml", wordPart("hdr", para(drawing("")))),
			"1 picture without text (headers and footers)"},
		{"pictures on the pages that Word stored", wordType, docx(para(run("a"), drawing("")) +
			para("<w:r><w:lastRenderedPageBreak/><w:t>b</w:t></w:r>", drawing(""), drawing(""))),
			"3 pictures without text (pages 1–2)"},
		{"an embedded object, without its picture", wordType, docx(para(run("a"), object), "word/_rels/document.xml.rels",
			relations("a", "package", "embeddings/book.xlsx", "b", "oleObject", "embeddings/oleObject1.bin")),
			"1 embedded workbook, 1 embedded object"},
		{"an embedded object with its place", wordType, docx(styled(`<w:outlineLvl w:val="0"/>`, "Sales")+
			para(`<w:r><w:object><o:OLEObject xmlns:o="urn:schemas-microsoft-com:office:office" r:id="a"/></w:object></w:r>`),
			"word/_rels/document.xml.rels", relations("a", "package", "embeddings/book.xlsx", "b", "oleObject",
				"embeddings/oleObject1.bin")), "1 embedded workbook (section Sales), 1 embedded object"},
		{"macros, hidden and deleted text", wordType, docx(para(run("a"), run("b", "<w:vanish/>"),
			`<w:del><w:r><w:delText>c</w:delText></w:r></w:del>`), "word/vbaProject.bin", "x"),
			"1 macro project, 1 hidden text (paragraph 1), 1 deleted text (paragraph 1)"},
		{"deleted rows and phonetic guides", wordType, docx("<w:tbl>" + tableRow("a", "b") + "<w:tr><w:trPr><w:del/>" +
			"</w:trPr><w:tc>" + para(run("c")) + "</w:tc></w:tr></w:tbl>" + para("<w:r><w:ruby><w:rt>"+run("r")+
			"</w:rt><w:rubyBase>"+run("b")+"</w:rubyBase></w:ruby></w:r>")),
			"1 deleted text (paragraph 1), 1 phonetic guide (paragraph 1)"},
		{"objects of a page", "text/html", []byte("<p>a<object data=b.html>b</object><object type=image/png data=c.png>" +
			"</object><object type=image/png data=d.png>the harbour</object><object type=video/mp4 data=e.mp4></object>"),
			"1 embedded page, 1 picture without text, 1 audio or video"},
		{"lone control characters of a text", "text/plain", []byte("a\rb\n\xc2\x85c\n\rd\n"),
			"2 carriage returns in a line (lines 1, 3), 1 NEL in a line (line 2)"},
		{"phonetic guides of a page", "text/html", []byte("<p><ruby>a<rp>(</rp><rt>b</rt><rp>)</rp></ruby>c"),
			"1 phonetic guide"},
		{"a table of contents counts once", wordType, docx(toc+toc+para(run("a")), "word/styles.xml", wordPart("styles",
			`<w:style w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>`)), "1 table of contents (paragraph 1)"},
		{"pictures and videos of slides", powerPoint, pptx([]string{shape("", line("", "x")) + "<p:pic/>", "<p:pic/>" +
			video + "<p:pic/>"}), "3 pictures without text (slides 1–2), 1 audio or video (slide 2)"},
		{"hidden sheets by name", excel, xlsx([]sheet{{"One", `state="hidden"`, cells("a")}, {"Two", `state="veryHidden"`,
			cells("b")}, {"Three", "", cells("c")}}), "2 hidden sheets (sheets One, Two)"},
		{"pictures among a notebook's outputs", jupyter, []byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":"x",` +
			`"outputs":[{"output_type":"display_data","data":{"image/png":"aGk=","image/jpeg":null,"text/plain":"<F>"}}]},` +
			`{"cell_type":"code","source":"y","outputs":[{"data":{"image/jpeg":null,"text/plain":"z"}}]}]}`),
			"1 picture without text (cell 1)"},
		{"programs among a notebook's outputs", jupyter, []byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":"x",` +
			`"outputs":[{"output_type":"display_data","data":{"application/vnd.plotly.v1+json":{"data":[]}}}]}]}`),
			"1 interactive output (cell 1)"},
		{"pictures of chapters of a book", "application/epub+zip", epub("B", "a.html", "<p>x</p>", "b.html",
			`<p>y<img src="b.png"><img src="c.png" alt="the harbour"></p>`),
			"1 picture without text (chapter 2; LOCI_OCR_COMMAND would have them read)"},
		{"a hidden section of OpenDocument", openText, odf("text", textP("a")+`<text:section text:display="none">`+
			textP("b")+`</text:section>`), "1 hidden text (paragraph 2)"},
		{"deleted text and pictures of OpenDocument", openText, odf("text", `<text:tracked-changes><text:changed-region>`+
			`<text:deletion>`+textP("gone")+`</text:deletion></text:changed-region></text:tracked-changes>`+
			textP(`a<draw:frame><draw:image/></draw:frame>`)),
			"1 deleted text (paragraph 1), 1 picture without text (paragraph 1)"},
	})
}

func TestAPDFSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	testOmits(t, []omitCase{
		{"nothing of a text", "application/pdf", fixture(t, "libreoffice.pdf"), ""},
	})
}
