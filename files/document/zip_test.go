package document_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

const archived = wordHead + "<w:p><w:r><w:t>x</w:t></w:r></w:p>" + wordTail

// stored returns an archive with the uncompressed entry archived and a header that may be false.
func stored(t *testing.T, header *zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(header)
	if err == nil {
		_, err = io.WriteString(w, archived)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchives(t *testing.T) {
	t.Parallel()
	whole := archive("word/document.xml", archived)
	testReads(t, document.DOCX, []readCase{
		{"bytes before the archive", append([]byte("#!/bin/sh\n"), whole...), "x\n", nil},
		{"a name that leads out of the archive", archive("../word/document.xml", archived), "x\n", nil},
		{"a name that begins at the root", archive("/word/./document.xml", archived), "x\n", nil},
		{"an entry that is not compressed", stored(t, &zip.FileHeader{Name: "word/document.xml", Method: zip.Store,
			CRC32:            crc(whole),
			CompressedSize64: uint64(len(archived)), UncompressedSize64: uint64(len(archived))}), "x\n", nil},
		{"archives within are not opened", archive("word/document.xml", archived, "word/media/a.zip", string(whole)), "x\n",
			nil},
	})
	size := uint64(len(archived))
	testRefusals(t, document.DOCX, []refusal{
		{"nothing", nil, "damaged"},
		{"an archive without its directory", whole[:len(whole)/2], "damaged"},
		{"a directory alone", whole[len(whole)-100:], "damaged"},
		{"a false checksum", stored(t, &zip.FileHeader{Name: "word/document.xml", CRC32: 7, CompressedSize64: size,
			UncompressedSize64: size}), "damaged"},
		{"an entry that is longer than it says", stored(t, &zip.FileHeader{Name: "word/document.xml", CRC32: crc(whole),
			CompressedSize64: size, UncompressedSize64: size - 7}), "damaged"},
		{"an entry that says it is of exabytes", stored(t, &zip.FileHeader{Name: "word/document.xml", CRC32: crc(whole),
			CompressedSize64: 1 << 62, UncompressedSize64: 1 << 62}), "damaged"},
		{"a method that nobody knows", stored(t, &zip.FileHeader{Name: "word/document.xml", Method: 77, CRC32: crc(whole),
			CompressedSize64: size, UncompressedSize64: size}), "damaged"},
		{"a password", stored(t, &zip.FileHeader{Name: "word/document.xml", Flags: 1, CRC32: crc(whole),
			CompressedSize64: size, UncompressedSize64: size}), "password"},
		{"a directory of names of 8 MiB", archive(longNames(150)...), "list of entries"},
		{"an offset beyond the file", patched(whole, 16, 0xfffffff0), "damaged"},
		{"a directory that says it is huge", patched(whole, 12, 0x7fffffff), "damaged"},
	})
}

// crc returns the checksum of an archive's first entry.
func crc(raw []byte) uint32 {
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		panic(err)
	}
	return z.File[0].CRC32
}

// longNames returns n entries with names of 60,000 bytes.
func longNames(n int) (parts []string) {
	for i := range n {
		parts = append(parts, string(rune('a'+i))+strings.Repeat("x", 60_000), "")
	}
	return parts
}

// patched returns an archive with a number changed in the record at its end.
func patched(raw []byte, at int, value uint32) []byte {
	raw = bytes.Clone(raw)
	binary.LittleEndian.PutUint32(raw[len(raw)-22+at:], value)
	return raw
}

func TestXMLAtItsLimits(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte {
		return docx(strings.Repeat("<w:sdt>", n) + para(run("x")) + strings.Repeat("</w:sdt>", n))
	}
	long := strings.Repeat("lorem ", 3<<20/6)
	testReads(t, document.DOCX, []readCase{
		{"900 elements within each other", nested(900), "x\n", nil},
		{"a text of 3 MiB", docx(para(run(long))), strings.TrimSpace(long) + "\n", nil},
		{"an address of 2 KiB", docx(para(`<w:hyperlink r:id="a">`+run("x")+"</w:hyperlink>"), "word/_rels/document.xml.rels",
			relations("a", "hyperlink", "https://"+strings.Repeat("a", 2040))), "[x](https://" + strings.Repeat("a", 2040) +
			")\n", nil},
		{"a longer address is left out", docx(para(`<w:hyperlink r:id="a">`+run("x")+"</w:hyperlink>"),
			"word/_rels/document.xml.rels",
			relations("a", "hyperlink", "https://"+strings.Repeat("a", 2041))), "x\n", nil},
		{"properties beyond those that are kept", docx(para("<w:pPr>"+strings.Repeat("<w:jc/>",
			3000)+`<w:outlineLvl w:val="0"/></w:pPr>`,
			run("x"))), "x\n", nil},
		{"a comment and an instruction are no text", docx("<!-- a --><?b c?>" + para(run("x<!-- d -->y"))), "xy\n", nil},
		{"characters by their numbers and CDATA", docx(para(run("&#x41;&lt;<![CDATA[<b>]]>"))), "A<<b>\n", nil},
	})
	testRefusals(t, document.DOCX, []refusal{
		{"1000 elements within each other", nested(1000), "nested deeper than 1000"},
		{"a text of 5 MiB", docx(para(run(strings.Repeat("lorem ", 5<<20/6)))), "more than 4 MiB"},
		{"elements that cross", docx("<w:p><w:r></w:p></w:r>"), "damaged"},
		{"an entity", docx(para(run("&nbsp;"))), "damaged"},
		{"a charset that nobody knows", archive("word/document.xml",
			`<?xml version="1.0" encoding="klingon"?>`+wordHead+wordTail), "damaged"},
		{"a root that is cut", archive("word/document.xml", wordHead+para(run("x"))), "damaged"},
	})
}
