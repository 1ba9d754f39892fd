package document_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/document"
)

// reading counts the bytes that are read from a document.
type reading struct {
	io.ReaderAt

	bytes int64
}

func (r *reading) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.bytes += int64(n)
	return n, err
}

// allocated returns how many bytes f allocates, on all goroutines. So tests that use it do not run in parallel.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bomb is a document that is small, or claims to be, and would become large.
type bomb struct {
	read document.Reader
	raw  func(t testing.TB) []byte
	says string
}

// packed returns an archive of one part.
func packed(name string, write func(io.Writer)) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return zipped(t, entries{name: write}) }
}

func word(body func(io.Writer)) func(testing.TB) []byte { return packed("word/document.xml", body) }

func odt(inner string, n int) func(testing.TB) []byte {
	return packed("content.xml", repeated(odfHead, inner, n, "</office:body></office:document-content>"))
}

// workbook returns a workbook with one sheet that has a row n times.
func workbook(row string, n int) func(testing.TB) []byte {
	const types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relation := func(kind, target string) func(io.Writer) {
		return text(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Id="rId1" Type="` +
			types + `/` + kind + `" Target="` + target + `"/></Relationships>`)
	}
	return func(t testing.TB) []byte {
		return zipped(t, entries{
			"_rels/.rels":                relation("officeDocument", "xl/workbook.xml"),
			"xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
			"xl/workbook.xml": text(`<workbook xmlns="` + main + `" xmlns:r="` + types + `"><sheets>` +
				`<sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>`),
			"xl/worksheets/sheet1.xml": repeated(`<worksheet xmlns="`+main+`"><sheetData>`, row, n, `</sheetData></worksheet>`),
		})
	}
}

func wordLinks(t testing.TB) []byte {
	return zipped(t, entries{
		"word/document.xml": repeated(wordHead+`<w:p `+
			`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`,
			`<w:hyperlink r:id="a"><w:r><w:t>x</w:t></w:r></w:hyperlink><w:r><w:t>y</w:t></w:r>`, 200_000, "</w:p>"+wordTail),
		"word/_rels/document.xml.rels": text(`<Relationships><Relationship Id="a" Type="hyperlink" ` +
			`TargetMode="External" Target="http://` +
			strings.Repeat("x", 2000) + `"/></Relationships>`),
	})
}

func manyEntries(t testing.TB) []byte {
	many := entries{}
	for i := range 10_001 {
		many[fmt.Sprintf("word/%d.xml", i)] = text("x")
	}
	return zipped(t, many)
}

func manyZeros(t testing.TB) []byte {
	parts := entries{"xl/workbook.xml": text("<workbook/>")}
	for i := range 10 {
		parts[fmt.Sprintf("xl/media/%d.bin", i)] = repeated("", strings.Repeat("\x00", 1000), 30_000, "")
	}
	return zipped(t, parts)
}

// entityTower writes the declarations of many entities, each of them twice the one before.
func entityTower(w io.Writer) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE d [")
	for i := range scale.Of(200_000, 1_000_000) {
		fmt.Fprintf(&b, `<!ENTITY e%d "&e%d;&e%d;">`, i+1, i, i)
	}
	text(b.String() + "]>" + wordHead + "<w:p><w:r><w:t>&e200000;</w:t></w:r></w:p>" + wordTail)(w)
}

func book(t testing.TB) []byte {
	return tenGigabytes(t, "c.xhtml", ' ',
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>`,
		"p.opf", `<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>`+
			`<spine><itemref idref="c"/></spine></package>`)
}

func deep(head, each string) func(testing.TB) []byte {
	return func(testing.TB) []byte { return []byte(head + strings.Repeat(each, 1_000_001)) }
}

const (
	wideCell = `<w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr>`
	wideRow  = `<table:table-row table:number-rows-repeated="999999"><table:table-cell ` +
		`table:number-columns-repeated="999999"/>` +
		`<table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>`
	fullRow = `<table:table-row table:number-rows-repeated="999999"><table:table-cell ` +
		`table:number-columns-repeated="999999">` +
		`<text:p>x</text:p></table:table-cell></table:table-row>`
)

var bombs = map[string]bomb{
	"10 GiB of zeros": {document.DOCX, func(t testing.TB) []byte {
		return tenGigabytes(t, "word/document.xml",
			0)
	}, "damaged"},
	"10 GiB of blanks": {document.DOCX, func(t testing.TB) []byte {
		return tenGigabytes(t, "word/document.xml",
			' ')
	}, "more than 4 MiB"},
	"10 GiB in a workbook": {document.XLSX, func(t testing.TB) []byte {
		return tenGigabytes(t, "xl/workbook.xml",
			0)
	}, "more than 256 MiB"},
	"10 GiB in a chapter": {document.EPUB, book, "more than 256 MiB"},
	"zeros in one part": {document.XLSX, packed("xl/workbook.xml", repeated("", strings.Repeat("\x00", 1000),
		40_000, "")), "600 times its size"},
	"many entities": {document.DOCX, word(entityTower), "declaration"},
	"an entity": {document.DOCX, word(text(`<!DOCTYPE d [<!ENTITY e "ee">]>` + wordHead +
		"<w:p><w:r><w:t>&e;</w:t></w:r></w:p>" + wordTail)), "damaged"},
	"a million elements deep": {document.DOCX, word(repeated(wordHead, "<w:sdt>", 1_000_000, "")),
		"nested deeper than 1000"},
	"a million spans deep": {document.ODT, odt("<text:span>", 1_000_000), "nested deeper than 1000"},
	"two million attributes": {document.DOCX, word(repeated(wordHead+"<w:p", ` a=""`, 2_000_000, "/>"+wordTail)),
		"more than 4 MiB"},
	"one long text": {document.DOCX, word(repeated(wordHead+"<w:p><w:r><w:t>", "abcdefgh ", 10_000_000,
		"</w:t></w:r></w:p>"+wordTail)), "more than 4 MiB"},
	"wide cells": {document.DOCX, word(repeated(wordHead+"<w:tbl>", wideCell, 10_000,
		"</w:tbl>"+wordTail)), "more than 64 MiB of text"},
	"one link from everywhere": {document.DOCX, wordLinks, "more than 64 MiB of text"},
	"many entries":             {document.DOCX, manyEntries, "10001 entries"},
	"repeated rows": {document.ODT, odt("<office:text><table:table>"+fullRow+"</table:table></office:text>",
		1000), "more than 64 MiB of text"},
	"repeated rows of a sheet": {document.ODS, odt("<office:spreadsheet><table:table>"+wideRow+"</table:table>"+
		"</office:spreadsheet>", 1000), "10 million cells"},
	"cells far to the right": {document.XLSX, workbook(`<row><c r="XFD1" t="str"><v>x</v></c></row>`, 300_000),
		"10 million cells"},
	"many cells": {document.XLSX, workbook(`<row><c><v>1</v></c></row>`, 3_000_000),
		"10 million XML elements"},
	"cells of nothing":     {document.IPYNB, deep(`{"cells":[`, "{},"), "braces"},
	"a million lists deep": {document.IPYNB, deep(`{"cells":`, "["), "damaged"},
}

// largeBombs pass a limit only if they are large. They run at the scales verify and all.
var largeBombs = map[string]bomb{
	"zeros in many parts": {document.XLSX, manyZeros, "more than 256 MiB"},
	"ten million elements": {document.DOCX, word(repeated(wordHead, "<w:p/>", 10_000_000, wordTail)),
		"10 million XML elements"},
	"many texts": {document.DOCX, word(repeated(wordHead, "<w:p><w:r><w:t>"+strings.Repeat("lorem ipsum ",
		90)+"</w:t></w:r></w:p>", 70_000, wordTail)), "more than 64 MiB of text"},
	"a paragraph of page breaks": {document.DOCX, word(repeated(wordHead+"<w:p><w:r>",
		"<w:lastRenderedPageBreak/><w:t>a b </w:t>", 2_000_000, "</w:r></w:p>"+wordTail)), "10 million XML elements"},
}

// tenGigabytes returns an archive with an entry of one byte 10 GiB times, after others. It packs to 10 MB.
func tenGigabytes(t testing.TB, name string, c byte, others ...string) []byte {
	t.Helper()
	const blocks = 10 << 10
	var block, b bytes.Buffer
	packer, err := flate.NewWriter(&block, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = packer.Write(bytes.Repeat([]byte{c}, 1<<20))
	if err := packer.Flush(); err != nil { // it ends on a byte boundary: each copy is a mebibyte more
		t.Fatal(err)
	}
	z := zip.NewWriter(&b)
	for i := 0; i < len(others); i += 2 {
		w, err := z.Create(others[i])
		if err != nil {
			t.Fatal(err)
		}
		text(others[i+1])(w)
	}
	w, err := z.CreateRaw(&zip.FileHeader{
		Name: name, Method: zip.Deflate, UncompressedSize64: blocks << 20, CompressedSize64: uint64(block.Len()) * blocks,
		//nolint:gosec // small
	})
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		_, _ = w.Write(block.Bytes())
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
