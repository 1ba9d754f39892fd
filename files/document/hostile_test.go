package document_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// zipped is an archive of the entries, each written by its function.
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

const wordHead = `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`

const wordTail = `</w:body></w:document>`

const odfHead = `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" ` +
	`xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" ` +
	`xmlns:xlink="http://www.w3.org/1999/xlink"><office:body>`

// reading counts what is asked of a document.
type reading struct {
	io.ReaderAt

	bytes int64
}

func (r *reading) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.bytes += int64(n)
	return n, err
}

// allocated is how many bytes f allocates, on all goroutines: tests that measure do not run beside others.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

type entries = map[string]func(io.Writer)

// bomb is a document that is small, or looks so, and would become large.
type bomb struct {
	read document.Reader
	raw  func(t testing.TB) []byte
	says string
}

// packed is an archive of one part.
func packed(name string, write func(io.Writer)) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return zipped(t, entries{name: write}) }
}

func word(body func(io.Writer)) func(testing.TB) []byte { return packed("word/document.xml", body) }

func odt(inner string, n int) func(testing.TB) []byte {
	return packed("content.xml", repeated(odfHead, inner, n, "</office:body></office:document-content>"))
}

// workbook is one of a sheet with a row n times.
func workbook(row string, n int) func(testing.TB) []byte {
	const types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relation := func(kind, target string) func(io.Writer) {
		return text(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="` +
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
		"word/document.xml": repeated(wordHead+`<w:p xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`,
			`<w:hyperlink r:id="a"><w:r><w:t>x</w:t></w:r></w:hyperlink><w:r><w:t>y</w:t></w:r>`, 200_000, "</w:p>"+wordTail),
		"word/_rels/document.xml.rels": text(`<Relationships><Relationship Id="a" Type="hyperlink" TargetMode="External" Target="http://` +
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

// entityTower is a declaration of a million entities, each twice the one before.
func entityTower(w io.Writer) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE d [")
	for i := range 1_000_000 {
		fmt.Fprintf(&b, `<!ENTITY e%d "&e%d;&e%d;">`, i+1, i, i)
	}
	text(b.String() + "]>" + wordHead + "<w:p><w:r><w:t>&e1000000;</w:t></w:r></w:p>" + wordTail)(w)
}

func book(t testing.TB) []byte {
	return tenGigabytes(t, "c.xhtml", ' ',
		"META-INF/container.xml", `<container><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>`,
		"p.opf", `<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>`+
			`<spine><itemref idref="c"/></spine></package>`)
}

func deep(head, each string) func(testing.TB) []byte {
	return func(testing.TB) []byte { return []byte(head + strings.Repeat(each, 1_000_000)) }
}

const (
	wideCell = `<w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr>`
	wideRow  = `<table:table-row table:number-rows-repeated="999999"><table:table-cell table:number-columns-repeated="999999"/>` +
		`<table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>`
	fullRow = `<table:table-row table:number-rows-repeated="999999"><table:table-cell table:number-columns-repeated="999999">` +
		`<text:p>x</text:p></table:table-cell></table:table-row>`
)

var bombs = map[string]bomb{
	"10 GiB of zeros":          {document.DOCX, func(t testing.TB) []byte { return tenGigabytes(t, "word/document.xml", 0) }, "damaged"},
	"10 GiB of blanks":         {document.DOCX, func(t testing.TB) []byte { return tenGigabytes(t, "word/document.xml", ' ') }, "more than 4 MiB"},
	"10 GiB in a workbook":     {document.XLSX, func(t testing.TB) []byte { return tenGigabytes(t, "xl/workbook.xml", 0) }, "more than 256 MiB"},
	"10 GiB in a chapter":      {document.EPUB, book, "more than 256 MiB"},
	"zeros in many parts":      {document.XLSX, manyZeros, "more than 256 MiB"},
	"zeros in one part":        {document.XLSX, packed("xl/workbook.xml", repeated("", strings.Repeat("\x00", 1000), 40_000, "")), "600 times its size"},
	"a million entities":       {document.DOCX, word(entityTower), "declaration"},
	"an entity":                {document.DOCX, word(text(`<!DOCTYPE d [<!ENTITY e "ee">]>` + wordHead + "<w:p><w:r><w:t>&e;</w:t></w:r></w:p>" + wordTail)), "damaged"},
	"a million elements deep":  {document.DOCX, word(repeated(wordHead, "<w:sdt>", 1_000_000, "")), "nested deeper than 1000"},
	"a million spans deep":     {document.ODT, odt("<text:span>", 1_000_000), "nested deeper than 1000"},
	"ten million elements":     {document.DOCX, word(repeated(wordHead, "<w:p/>", 10_000_000, wordTail)), "10 million XML elements"},
	"two million attributes":   {document.DOCX, word(repeated(wordHead+"<w:p", ` a=""`, 2_000_000, "/>"+wordTail)), "more than 4 MiB"},
	"one long text":            {document.DOCX, word(repeated(wordHead+"<w:p><w:r><w:t>", "abcdefgh ", 10_000_000, "</w:t></w:r></w:p>"+wordTail)), "more than 4 MiB"},
	"many texts":               {document.DOCX, word(repeated(wordHead, "<w:p><w:r><w:t>"+strings.Repeat("lorem ipsum ", 90)+"</w:t></w:r></w:p>", 70_000, wordTail)), "more than 64 MiB of text"},
	"wide cells":               {document.DOCX, word(repeated(wordHead+"<w:tbl>", wideCell, 10_000, "</w:tbl>"+wordTail)), "more than 64 MiB of text"},
	"one link from everywhere": {document.DOCX, wordLinks, "more than 64 MiB of text"},
	"many entries":             {document.DOCX, manyEntries, "10001 entries"},
	"repeated rows":            {document.ODT, odt("<office:text><table:table>"+fullRow+"</table:table></office:text>", 1000), "more than 64 MiB of text"},
	"repeated rows of a sheet": {document.ODS, odt("<office:spreadsheet><table:table>"+wideRow+"</table:table></office:spreadsheet>", 1000), "10 million cells"},
	"cells far to the right":   {document.XLSX, workbook(`<row><c r="XFD1" t="str"><v>x</v></c></row>`, 300_000), "10 million cells"},
	"many cells":               {document.XLSX, workbook(`<row><c><v>1</v></c></row>`, 3_000_000), "10 million XML elements"},
	"a million groups deep":    {document.RTF, deep(`{\rtf1 `, "{"), "nested deeper than 1000"},
	"a million lists deep":     {document.IPYNB, deep(`{"cells":`, "["), "damaged"},
}

// tenGigabytes is an archive of an entry of one byte 10 GiB times, which packs to 10 MB, after others.
func tenGigabytes(t testing.TB, name string, c byte, others ...string) []byte {
	t.Helper()
	const blocks = 10 << 10
	var block, b bytes.Buffer
	packer, err := flate.NewWriter(&block, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = packer.Write(bytes.Repeat([]byte{c}, 1<<20))
	if err := packer.Flush(); err != nil { // ends on a byte: the same again is a mebibyte more
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
		Name: name, Method: zip.Deflate, UncompressedSize64: blocks << 20, CompressedSize64: uint64(block.Len()) * blocks, //nolint:gosec // small
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

// TestBombsEndWithinBounds measures what is allocated in all: a bound of the work done, not of the memory held at one time.
func TestBombsEndWithinBounds(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	if testing.Short() {
		t.Skip("ten million elements take seconds")
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			raw := bomb.raw(t)
			in := &reading{ReaderAt: bytes.NewReader(raw)}
			var got document.Text
			var err error
			bytes := allocated(func() { got, err = bomb.read(in, int64(len(raw))) })
			if !isUnreadable(err) || !strings.Contains(err.Error(), bomb.says) {
				t.Errorf("read %d bytes of text, %v; want an *UnreadableError with %q", len(got.Text), err, bomb.says)
			}
			t.Logf("%d bytes: %v; %d MiB allocated, %d bytes read", len(raw), err, bytes>>20, in.bytes)
			if bytes > 3<<30 {
				t.Errorf("%d MiB allocated for %d bytes", bytes>>20, len(raw))
			}
			if in.bytes > 3*int64(len(raw))+1<<20 {
				t.Errorf("%d bytes read of %d", in.bytes, len(raw))
			}
		})
	}
}

func TestNestedArchivesAreNotOpened(t *testing.T) {
	t.Parallel()
	inner := zipped(t, entries{"x": repeated("", "\x00", 10_000_000, "")})
	for range 5 {
		outer := inner
		inner = zipped(t, entries{"a.zip": func(w io.Writer) { _, _ = w.Write(outer) }})
	}
	raw := zipped(t, entries{
		"word/media/a.zip":  func(w io.Writer) { _, _ = w.Write(inner) },
		"word/document.xml": text(wordHead + "<w:p><w:r><w:t>outer</w:t></w:r></w:p>" + wordTail),
	})
	got, err := document.DOCX(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || got.Text != "outer\n" {
		t.Errorf("got %q, %v; want the outer text", got.Text, err)
	}
}

func TestUnreadableDocumentsSayWhatToDo(t *testing.T) {
	t.Parallel()
	ole := func(name string) []byte {
		raw := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 70<<10)...)
		for i := range name {
			raw = append(raw, name[i], 0)
		}
		return append(raw, make([]byte, 4096)...)
	}
	manifest := `<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry>` +
		`<manifest:encryption-data/></manifest:file-entry></manifest:manifest>`
	encryption := `<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>`
	for claim, c := range map[string]struct {
		mediaType string
		raw       []byte
		says      string
	}{
		"an encrypted Word document is protected":   {officeTypes[".docx"], ole("EncryptedPackage"), "password"},
		"an encrypted workbook is protected":        {officeTypes[".xlsx"], ole("EncryptedPackage"), "password"},
		"what Office encrypted is protected":        {"application/x-ole-storage", ole("EncryptedPackage"), "password"},
		"an old document is to be saved anew":       {"application/x-ole-storage", ole("WordDocument"), ".docx"},
		"an encrypted ODT is protected":             {officeTypes[".odt"], zipped(t, entries{"content.xml": text("x"), "META-INF/manifest.xml": text(manifest)}), "password"},
		"an encrypted book is protected":            {officeTypes[".epub"], zipped(t, entries{"META-INF/encryption.xml": text(encryption)}), "rights"},
		"a document without text says so":           {officeTypes[".docx"], zipped(t, entries{"word/document.xml": text(wordHead + "<w:p/>" + wordTail)}), "no text"},
		"another archive is not a document":         {officeTypes[".docx"], zipped(t, entries{"a.txt": text("x")}), "damaged"},
		"another archive is not a workbook":         {officeTypes[".xlsx"], zipped(t, entries{"a.txt": text("x")}), "damaged"},
		"another archive is not a book":             {officeTypes[".epub"], zipped(t, entries{"a.txt": text("x")}), "damaged"},
		"no archive is no document":                 {officeTypes[".pptx"], []byte("hello"), "damaged"},
		"nothing is no document":                    {officeTypes[".odt"], nil, "damaged"},
		"text is not RTF":                           {officeTypes[".rtf"], []byte("hello"), "damaged"},
		"RTF that is cut is damaged":                {officeTypes[".rtf"], []byte(`{\rtf1 hello`), "damaged"},
		"JSON is not always a notebook":             {officeTypes[".ipynb"], []byte(`[1,2]`), "damaged"},
		"a notebook without cells holds no text":    {officeTypes[".ipynb"], []byte(`{"cells":[],"nbformat":4}`), "no text"},
		"a presentation of nothing holds no text":   {officeTypes[".pptx"], zipped(t, entries{"ppt/presentation.xml": text("<p/>")}), "no text"},
		"a sheet of a damaged workbook is not read": {officeTypes[".xlsx"], zipped(t, entries{"xl/workbook.xml": text("<workbook")}), "damaged"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			read, _ := document.Office(c.mediaType)
			_, err := read(bytes.NewReader(c.raw), int64(len(c.raw)))
			if !isUnreadable(err) || !strings.Contains(err.Error(), c.says) || !strings.HasSuffix(err.Error(), ".") {
				t.Errorf("got %v, want an *UnreadableError with %q", err, c.says)
			}
		})
	}
}

// TestAFileThatCannotBeReadIsNotItsFault: such errors pass, and the document is read again.
func TestAFileThatCannotBeReadIsNotItsFault(t *testing.T) {
	t.Parallel()
	for ext, mediaType := range officeTypes {
		read, _ := document.Office(mediaType)
		if _, err := read(brokenDisk{}, 1000); isUnreadable(err) || !errors.Is(err, errDisk) {
			t.Errorf("%s: got %v, want %v", ext, err, errDisk)
		}
	}
}

type brokenDisk struct{}

var errDisk = errors.New("input/output error")

func (brokenDisk) ReadAt([]byte, int64) (int, error) { return 0, errDisk }

// TestDamagedDocumentsDoNotPanic reads copies of each fixture with bytes changed, and cut short.
func TestDamagedDocumentsDoNotPanic(t *testing.T) {
	t.Parallel()
	const copies = 60
	for ext := range officeTypes {
		for _, path := range fixtures(t, "*"+ext) {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for seed := range uint64(copies) {
					readDamaged(t, path, damaged(raw, seed))
				}
				if ext != ".rtf" && ext != ".ipynb" {
					for seed := range uint64(copies) {
						readDamaged(t, path, damagedParts(t, raw, seed))
					}
				}
			})
		}
	}
}

// readDamaged reads a document that may not be whole: its text is a text, or it is unreadable.
func readDamaged(t testing.TB, path string, raw []byte) {
	t.Helper()
	got, err := readerOf(t, path)(bytes.NewReader(raw), int64(len(raw)))
	switch {
	case err == nil:
		checkMarkdown(t, got)
	case !isUnreadable(err):
		t.Errorf("%s: got %v, want an *UnreadableError", path, err)
	}
}

// damaged has bytes changed; every third copy is cut short too.
func damaged(raw []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	raw = bytes.Clone(raw)
	for range 1 + random.IntN(20) {
		raw[random.IntN(len(raw))] = byte(random.Uint32())
	}
	if seed%3 == 0 {
		raw = raw[:random.IntN(len(raw))]
	}
	return raw
}

// damagedParts has bytes changed within the parts of an archive, which are packed again: what the archive's checksums do not find.
func damagedParts(t testing.TB, raw []byte, seed uint64) []byte {
	t.Helper()
	return repacked(t, raw, func(name string, part []byte) []byte {
		seed++
		if len(part) > 0 && strings.HasSuffix(name, "ml") {
			return swapped(part, seed)
		}
		return part
	})
}

// rezipped is an archive with one part changed.
func rezipped(t testing.TB, raw []byte, name string, changed []byte) []byte {
	t.Helper()
	return repacked(t, raw, func(of string, part []byte) []byte {
		if of == name {
			return changed
		}
		return part
	})
}

// unzipped is one part of an archive.
func unzipped(t testing.TB, raw []byte, name string) (found []byte) {
	t.Helper()
	repacked(t, raw, func(of string, part []byte) []byte {
		if of == name {
			found = part
		}
		return part
	})
	return found
}

func repacked(t testing.TB, raw []byte, change func(name string, part []byte) []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	entries := entries{}
	for _, f := range z.File {
		body, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		part = change(f.Name, part)
		entries[f.Name] = func(w io.Writer) { _, _ = w.Write(part) }
	}
	return zipped(t, entries)
}

// swapped has tags of a part exchanged, so that it often stays XML, or bytes changed.
func swapped(part []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 2))
	if seed%4 == 0 {
		return damaged(part, seed|1)
	}
	tags := bytes.SplitAfter(part, []byte("/>"))
	random.Shuffle(len(tags), func(i, j int) {
		if random.IntN(4) == 0 && i > 0 && j > 0 && i < len(tags)-1 && j < len(tags)-1 {
			tags[i], tags[j] = tags[j], tags[i]
		}
	})
	return bytes.Join(tags, nil)
}
