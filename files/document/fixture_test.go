package document_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/files/document"
)

// checkGolden compares a text with a file under testdata.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, "testdata/"+name, got)
}

func isUnreadable(err error) bool {
	_, ok := errors.AsType[*document.UnreadableError](err)
	return ok
}

// readCase is a document, with the text and pages that its reader returns.
type readCase struct {
	claim string
	raw   []byte
	want  string
	pages []int
}

// testReads runs the cases of one reader.
func testReads(t *testing.T, read document.Reader, cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			got, err := read(bytes.NewReader(c.raw), int64(len(c.raw)))
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

// refusal is a document, with a part of the sentence that refuses it.
type refusal struct {
	claim string
	raw   []byte
	says  string
}

// testRefusals runs the cases of one reader.
func testRefusals(t *testing.T, read document.Reader, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			got, err := read(bytes.NewReader(c.raw), int64(len(c.raw)))
			if !isUnreadable(err) || !strings.Contains(err.Error(), c.says) || !strings.HasSuffix(err.Error(), ".") {
				t.Errorf("got %.80q, %v, want an *UnreadableError with %q", got.Text, err, c.says)
			}
		})
	}
}

// checkMarkdown checks what is true of every document's text.
func checkMarkdown(t testing.TB, text document.Text) {
	t.Helper()
	if strings.ToValidUTF8(text.Text, "") != text.Text || strings.ContainsAny(text.Text, "\x00\r") {
		t.Errorf("not clean: %q", text.Text)
	}
	if !strings.HasSuffix(text.Text, "\n") || strings.HasSuffix(text.Text, "\n\n") {
		t.Errorf("ends in %q, want one line end", text.Text[max(0, len(text.Text)-10):])
	}
	last, lines := 1, strings.Count(text.Text, "\n")
	for _, line := range text.Pages {
		if line < last || line > lines {
			t.Errorf("pages %v of %d lines do not ascend within them", text.Pages, lines)
		}
		last = line
	}
}

// checkRead checks that a reader returns a valid text or an *UnreadableError.
func checkRead(t testing.TB, read document.Reader, raw []byte) {
	t.Helper()
	got, err := read(bytes.NewReader(raw), int64(len(raw)))
	switch {
	case err == nil:
		checkMarkdown(t, got)
	case !isUnreadable(err):
		t.Errorf("got %v, want an *UnreadableError", err)
	}
}

type entries = map[string]func(io.Writer)

// zipped returns an archive of the entries, each written by its function.
func zipped(t testing.TB, entries entries) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, write := range entries {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		write(w)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archive returns an archive of parts, given by their names and contents in turn.
func archive(parts ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err == nil {
			_, err = io.WriteString(w, parts[i+1])
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func text(s string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, s) }
}

// repeated writes s n times between head and tail.
func repeated(head, s string, n int, tail string) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, head)
		block := strings.Repeat(s, 1000)
		for range n / 1000 {
			_, _ = io.WriteString(w, block)
		}
		_, _ = io.WriteString(w, tail)
	}
}

// utf16LE returns a text in UTF-16 with a byte order mark.
func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, r := range s {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}

const (
	schemas = "http://schemas.openxmlformats.org/"

	wordNamespaces = ` xmlns:w="` + schemas + `wordprocessingml/2006/main" xmlns:r="` + schemas +
		`officeDocument/2006/relationships" xmlns:mc="` + schemas + `markup-compatibility/2006" xmlns:m="` + schemas +
		`officeDocument/2006/math"` + drawingNamespaces
	wordHead = `<w:document` + wordNamespaces + `><w:body>`
	wordTail = `</w:body></w:document>`

	drawingNamespaces = ` xmlns:a="` + schemas + `drawingml/2006/main" xmlns:dgm="` + schemas +
		`drawingml/2006/diagram" xmlns:c="` + schemas + `drawingml/2006/chart" xmlns:pic="` + schemas +
		`drawingml/2006/picture" xmlns:wp="` + schemas + `drawingml/2006/wordprocessingDrawing" xmlns:xdr="` + schemas +
		`drawingml/2006/spreadsheetDrawing"`

	slideNamespaces = ` xmlns:p="` + schemas + `presentationml/2006/main" xmlns:r="` + schemas +
		`officeDocument/2006/relationships" xmlns:mc="` + schemas + `markup-compatibility/2006" xmlns:m="` + schemas +
		`officeDocument/2006/math"` + drawingNamespaces

	oasis         = "urn:oasis:names:tc:opendocument:xmlns:"
	odfNamespaces = ` xmlns:office="` + oasis + `office:1.0" xmlns:text="` + oasis + `text:1.0" xmlns:table="` + oasis +
		`table:1.0" xmlns:style="` + oasis + `style:1.0" xmlns:draw="` + oasis + `drawing:1.0" xmlns:presentation="` +
		oasis + `presentation:1.0" xmlns:fo="` + oasis + `xsl-fo-compatible:1.0" xmlns:manifest="` + oasis +
		`manifest:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:svg="` + oasis + `svg-compatible:1.0" xmlns:chart="` +
		oasis + `chart:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"`
	odfHead = `<office:document-content` + odfNamespaces + `><office:body>`
	odfTail = `</office:body></office:document-content>`
)

// docx returns a Word document with a body and further parts.
func docx(body string, parts ...string) []byte {
	return archive(append([]string{"word/document.xml", wordHead + body + wordTail}, parts...)...)
}

// wordPart returns an XML part of a Word document. root names its root element, for example "styles".
func wordPart(root, content string) string {
	return "<w:" + root + wordNamespaces + ">" + content + "</w:" + root + ">"
}

// run returns a run of a Word document with a text and properties.
func run(s string, props ...string) string {
	return "<w:r><w:rPr>" + strings.Join(props, "") + "</w:rPr><w:t>" + s + "</w:t></w:r>"
}

// para returns a paragraph of a Word document.
func para(runs ...string) string { return "<w:p>" + strings.Join(runs, "") + "</w:p>" }

// styled returns a paragraph of a Word document with properties and a text.
func styled(props, s string) string { return para("<w:pPr>"+props+"</w:pPr>", run(s)) }

// relations returns a part with relations. Each is given by id, kind and target; a target with a scheme is external.
func relations(all ...string) string {
	var b strings.Builder
	for i := 0; i < len(all); i += 3 {
		mode := ""
		if strings.Contains(all[i+2], ":") {
			mode = ` TargetMode="External"`
		}
		b.WriteString(`<Relationship Id="` + all[i] + `" Type="` + schemas + `officeDocument/2006/relationships/` +
			all[i+1] + `" Target="` + all[i+2] + `"` + mode + `/>`)
	}
	return `<Relationships xmlns="` + schemas + `package/2006/relationships">` + b.String() + "</Relationships>"
}

// odf returns an OpenDocument with a body: kind is text, spreadsheet or presentation.
func odf(kind, body string, parts ...string) []byte {
	content := odfHead + "<office:" + kind + ">" + body + "</office:" + kind + ">" + odfTail
	return archive(append([]string{"content.xml", content}, parts...)...)
}

// odfStyles returns the part with the styles.
func odfStyles(styles string) string {
	return "<office:document-styles" + odfNamespaces + "><office:styles>" + styles +
		"</office:styles></office:document-styles>"
}

// pptx returns a presentation of slides, each given by its shapes, and further parts.
func pptx(slides []string, parts ...string) []byte {
	var ids strings.Builder
	var links []string
	for i, shapes := range slides {
		n := string(rune('1' + i))
		ids.WriteString(`<p:sldId r:id="s` + n + `"/>`)
		links = append(links, "s"+n, "slide", "slides/slide"+n+".xml")
		parts = append(parts, "ppt/slides/slide"+n+".xml", slidePart(shapes))
	}
	parts = append(parts, "ppt/presentation.xml", slidePart(ids.String()),
		"ppt/_rels/presentation.xml.rels", relations(links...))
	return archive(parts...)
}

func slidePart(content string) string { return "<p:sld" + slideNamespaces + ">" + content + "</p:sld>" }

// shape returns a shape with paragraphs; placeholder may be empty.
func shape(placeholder string, paragraphs ...string) string {
	if placeholder != "" {
		placeholder = `<p:nvSpPr><p:nvPr><p:ph type="` + placeholder + `"/></p:nvPr></p:nvSpPr>`
	}
	return "<p:sp>" + placeholder + "<p:txBody>" + strings.Join(paragraphs, "") + "</p:txBody></p:sp>"
}

// line returns a paragraph of a slide with a text and properties such as `<a:pPr lvl="1"/>`.
func line(props, s string) string { return "<a:p>" + props + "<a:r><a:t>" + s + "</a:t></a:r></a:p>" }

// sheet is a sheet of a workbook: its rows, and attributes such as `state="hidden"`.
type sheet struct{ name, attributes, rows string }

// xlsx returns a workbook of sheets and further parts.
func xlsx(sheets []sheet, parts ...string) []byte { return xlsxWith("", sheets, parts...) }

// xlsxWith returns a workbook with properties: an element before the list of its sheets.
func xlsxWith(properties string, sheets []sheet, parts ...string) []byte {
	main := ` xmlns="` + schemas + `spreadsheetml/2006/main" xmlns:r="` + schemas + `officeDocument/2006/relationships"`
	var list strings.Builder
	links := []string{"styles", "styles", "styles.xml", "strings", "sharedStrings", "sharedStrings.xml"}
	for i, s := range sheets {
		n := string(rune('1' + i))
		list.WriteString(`<sheet name="` + s.name + `" sheetId="` + n + `" r:id="s` + n + `" ` + s.attributes + `/>`)
		links = append(links, "s"+n, "worksheet", "worksheets/sheet"+n+".xml")
		parts = append(parts, "xl/worksheets/sheet"+n+".xml",
			"<worksheet"+main+"><sheetData>"+s.rows+"</sheetData></worksheet>")
	}
	parts = append(parts, "_rels/.rels", relations("r", "officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml", "<workbook"+main+">"+properties+"<sheets>"+list.String()+"</sheets></workbook>",
		"xl/_rels/workbook.xml.rels", relations(links...))
	return archive(parts...)
}

// cells returns a row of cells with texts.
func cells(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString(`<c t="inlineStr"><is><t>` + s + `</t></is></c>`)
	}
	return "<row>" + b.String() + "</row>"
}

// epub returns a book of chapters, each given by its name and its HTML in turn.
func epub(title string, chapters ...string) []byte {
	var items, spine strings.Builder
	parts := []string{"META-INF/container.xml",
		`<container><rootfiles><rootfile full-path="OEBPS/p.opf"/></rootfiles></container>`}
	for i := 0; i < len(chapters); i += 2 {
		items.WriteString(`<item id="` + chapters[i] + `" href="` + chapters[i] + `" media-type="application/xhtml+xml"/>`)
		spine.WriteString(`<itemref idref="` + chapters[i] + `"/>`)
		parts = append(parts, "OEBPS/"+chapters[i], chapters[i+1])
	}
	return archive(append(parts, "OEBPS/p.opf", `<package><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">`+
		`<dc:title>`+
		title+`</dc:title></metadata><manifest>`+items.String()+`</manifest><spine>`+spine.String()+`</spine></package>`)...)
}
