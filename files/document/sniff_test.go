package document_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestSniffAcceptsText(t *testing.T) {
	t.Parallel()
	const octets = "application/octet-stream"
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf("docProps/%d.xml", i)
	}
	for _, tt := range []struct{ name, file, declared, head, want string }{
		{"Markdown by its extension", "a.MD", octets, "# Title\n", "text/markdown"},
		{"Python by its extension", "src/a.py", "", "import os\n", "text/x-python"},
		{"JSON", "a.json", "text/plain", `{"a": 1}`, "application/json"},
		{"JSON lines", "a.jsonl", octets, "{}\n{}\n", "application/jsonl"},
		{"CSV", "a.csv", "application/vnd.ms-excel", "a,b\n1,2\n", "text/csv"},
		{"a file by its whole name", "Dockerfile", octets, "FROM scratch\n", "text/x-dockerfile"},
		{"an unknown extension by its content", "page.xyz", octets, "<!DOCTYPE html><html><body>x</body></html>",
			"text/html"},
		{"a script by its first line", "run", octets, "#!/usr/bin/env python3\nprint(1)\n", "text/x-python"},
		{"an unknown extension as declared", "a.foo", "text/x-foo; charset=utf-8", "hello there, friend\n", "text/x-foo"},
		{"a declared type that is not text is ignored", "a.foo", "image/png", "hello there, friend\n", "text/plain"},
		{"nothing known", "notes", "", "hello there, friend\n", "text/plain"},
		{"what another program could not decode", "a.txt", octets, "Gr\ufffd\ufffde", "text/plain"},
		{"an empty file", "empty", octets, "", "text/plain"},
		{"an empty file by its extension", "empty.py", octets, "", "text/x-python"},
		{"a text that begins as a bitmap does", "cars.txt", octets, "BMW and others make cars.\n", "text/plain"},
		{"a text that begins as a program does", "a.txt", octets, "MZ is how programs begin\n", "text/plain"},
		{"colours in a log", "a.log", octets, "\x1b[31merror\x1b[0m it broke\n", "text/plain"},
		{"fields between SOH", "fix.log", octets, strings.Repeat("8=FIX.4.4\x0135=D\x0155=IBM\x01", 20), "text/plain"},
		{"fields between unit separators", "a.csv", octets, strings.Repeat("a\x1fb\x1fc\x1e", 20), "text/csv"},
		{"lines that end in NEL", "a.txt", octets, strings.Repeat("Käse\u0085", 20), "text/plain"},
		{"deletes", "a.txt", octets, strings.Repeat("ab\x7f", 20), "text/plain"},
		{"the end of a file of DOS", "a.txt", octets, "hello\r\n" + strings.Repeat("\x1a", 120), "text/plain"},
		{"form feeds", "rfc.txt", octets, "page one\n\fpage two\n", "text/plain"},
		{"a rare NUL", "a.log", octets, "a line that is long enough\n\x00another line\n", "text/plain"},
		{"NULs after a power loss", "a.log", octets, "one line\n" + strings.Repeat("\x00", 4096) + "\nand more of the " +
			"log\n", "text/plain"},
		{"a log that begins with many NULs", "a.log", octets, strings.Repeat("\x00", 70_000) + "a line of text\n",
			"text/plain"},
		{"a character cut where the head ends", "a.txt", octets, strings.Repeat("ü", 2048)[:4095], "text/plain"},
		{"a PDF, though all of it is ASCII", "a.txt", octets, "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
			"application/pdf"},
		{"a PDF after rubbish, by its extension", "a.PDF", "", "HTTP/1.1 200 OK\n%PDF-1.4\n1 0 obj\n", "application/pdf"},
		{"a text that speaks of PDF", "a.md", "", "A file begins with %PDF-1.4 and ends with %%EOF.\n", "text/markdown"},
		{"a Word document", "a.bin", octets, zipOf("[Content_Types].xml", "_rels/.rels", "word/document.xml"), docx},
		{"a Word document whose parts come late", "a", octets, zipOf(append(many, "[Content_Types].xml",
			"word/document.xml")...), docx},
		{"a notebook by its extension", "a.ipynb", octets, `{"cells": [], "nbformat": 4}`, "application/x-ipynb+json"},
		{"a notebook after a byte order mark", "a.ipynb", octets, "\ufeff{\"cells\": [], \"nbformat\": 4}",
			"application/x-ipynb+json"},
		{"an image that is text", "a.svg", octets, `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := document.Sniff(tt.file, tt.declared, strings.NewReader(tt.head),
				int64(len(tt.head))); err != nil || got != tt.want {
				t.Errorf("Sniff(%q, %q, %.100q) = %q, %v, want %q", tt.file, tt.declared, tt.head, got, err, tt.want)
			}
		})
	}
}

func pngImage() string {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 9, 9)))
	return b.String()
}

func zipOf(names ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		f, _ := w.Create(name)
		_, _ = f.Write([]byte("<xml/>"))
	}
	_ = w.Close()
	return b.String()
}

func tarOf(name, text string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestSniffTellsABrokenDocumentFromAnArchive(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"report.DOCX": "it is damaged", "book.epub": "it is damaged",
		"report.zip": "Archives are not unpacked"} {
		raw := "PK\x03\x04\x14\x00" + strings.Repeat("\x00\x93", 50)
		_, err := document.Sniff(name, "", strings.NewReader(raw), int64(len(raw)))
		if _, ok := errors.AsType[*document.UnsupportedError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an UnsupportedError with %q", name, err, want)
		}
	}
}

func TestSniffRefusesRTF(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ claim, name, declared, head string }{
		{"by its content, though all of it is ASCII", "a.txt", "text/plain", `{\rtf1\ansi Hello}`},
		{"by its content, with bytes that are not text", "a", "", "{\\rtf1\\ansi \\bin4 \x00\x01\x02\x93}"},
		{"by its extension", "a.RTF", "application/octet-stream", "hello there, friend\n"},
		{"by its media type", "a", "application/rtf; charset=utf-8", "hello there, friend\n"},
		{"by its other media type", "a", "text/rtf", ""},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			media, err := document.Sniff(tt.name, tt.declared, strings.NewReader(tt.head), int64(len(tt.head)))
			want := "Unsupported file type: text/rtf (filename: " + tt.name + "). " +
				"RTF documents are not read. Save the document as DOCX or plain text, and upload that. " +
				"Or ask the operator to set LOCI_CONVERT_COMMAND, which has such files converted. Supported types: PDF;"
			_, ok := errors.AsType[*document.UnsupportedError](err)
			if !ok || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "EPUB; RTF") {
				t.Errorf("Sniff = %q, %v, want an UnsupportedError with %q", media, err, want)
			}
		})
	}
	raw := zipOf("[Content_Types].xml", "word/document.xml")
	if media, err := document.Sniff("a.rtf", "text/rtf", strings.NewReader(raw), int64(len(raw))); err != nil {
		t.Errorf("a Word document called a.rtf: %q, %v; want it accepted by its content", media, err)
	}
}

func TestSniffRefusesWhatIsNotText(t *testing.T) {
	t.Parallel()
	const archive = "Archives are not unpacked: upload the files in them. "
	const ole = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	for _, tt := range []struct{ name, head, want, advice string }{
		{"a PNG", pngImage(), "image/png", "Pictures are not read. Run OCR on it, or describe it, and upload the text. " +
			"Or ask the operator to set LOCI_OCR_COMMAND, which has them read. "},
		{"a ZIP", zipOf("a.txt"), "application/zip", archive},
		{"a ZIP with a document in it", zipOf("a.docx", "word/document.xml"), "application/zip", archive},
		{"a program for Java", zipOf("META-INF/MANIFEST.MF", "a.class"), "application/java-archive", archive},
		{"a gzip", gzipped(strings.Repeat("text ", 50)), "application/gzip", archive},
		{"7z", "7z\xbc\xaf\x27\x1c\x00\x04" + strings.Repeat("\x00\x93", 50), "application/x-7z-compressed", archive},
		{"RAR", "Rar!\x1a\x07\x01\x00" + strings.Repeat("\x00\x93", 50), "application/vnd.rar", archive},
		{"tar", tarOf("a.txt", "text"), "application/x-tar", archive},
		{"an old document of Office", ole + strings.Repeat("\x00\x93", 2500), "application/x-ole-storage",
			"It is a container of Microsoft's OLE that holds no document that is known, such as a cache of pictures or an " +
				"installer. If a program opens it, export it as PDF, and upload that. "},
		{"an encrypted document of Office", ole + strings.Repeat("\x00\x93", 2500) +
			"E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00",
			"application/x-ole-storage", "The document is protected by a password. Remove the password in the program that " +
				"made it, and upload it again. "},
		{"an ELF", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00" + strings.Repeat("\x00\x01", 50),
			"application/x-executable", ""},
		{"nothing known", strings.Repeat("\x01\x02\x9c\x00\x00\xf8\x90", 50), "unknown", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			media, err := document.Sniff("renamed.txt", "text/plain", strings.NewReader(tt.head), int64(len(tt.head)))
			if _, ok := errors.AsType[*document.UnsupportedError](err); !ok {
				t.Fatalf("Sniff = %q, %v, want an UnsupportedError", media, err)
			}
			want := "Unsupported file type: " + tt.want + " (filename: renamed.txt). " + tt.advice + "Supported types: "
			if got := err.Error(); !strings.HasPrefix(got, want) {
				t.Errorf("Sniff: %q, want %q…", got, want)
			}
		})
	}
}

// ole returns an OLE container with an entry of this name.
func ole(name string) string {
	return "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00\x93", 700) +
		strings.Join(strings.Split(name, ""), "\x00") + "\x00\x00\x00" + strings.Repeat("\x00\x93", 900)
}

// Each format that is not read has its own sentence.
func TestSniffSaysWhatToUploadInstead(t *testing.T) {
	t.Parallel()
	binary := strings.Repeat("\x01\x02\x9c\x00\x00\xf8\x90", 50)
	typed := func(mediaType string) string { return string(archive("mimetype", mediaType, "content.xml", "<x/>")) }
	for _, tt := range []struct{ name, raw, says string }{
		{"a.xlsb", zipOf("[Content_Types].xml", "xl/workbook.bin"), "binary workbook of Excel. Save it as .xlsx"},
		{"a.xlsx", zipOf("[Content_Types].xml", "xl/workbook.bin"), "binary workbook of Excel. Save it as .xlsx"},
		{"a.msg", ole("__properties_version1.0"), "message of Outlook. Save it as .eml"},
		{"a.doc", ole("WordDocument"), "Word's old binary format. Save it as .docx"},
		{"a.xls", ole("Workbook"), "Excel's old binary format. Save it as .xlsx"},
		{"a.xls", ole("Book"), "Excel's old binary format. Save it as .xlsx"},
		{"a.ppt", ole("PowerPoint Document"), "PowerPoint's old binary format. Save it as .pptx"},
		{"a.doc", ole("__properties_version1.0"), "message of Outlook"},
		{"a.vsd", ole("VisioDocument"), "drawing of Visio. Export it as PDF"},
		{"a.hwp", ole("HwpSummaryInformation"), "document of Hancom"},
		{"a.docx", ole("EncryptedPackage"), "protected by a password"},
		{"a.pages", zipOf("Index/Document.iwa"), "Pages. Export it as Word or PDF"},
		{"a.key", zipOf("Index/Document.iwa"), "Keynote. Export it as PowerPoint or PDF"},
		{"a.numbers", zipOf("Index/Document.iwa"), "Numbers. Export it as Excel or CSV"},
		{"a.odg", typed("application/vnd.oasis.opendocument.graphics"), "drawing of OpenDocument. Export it as PDF"},
		{"a.odf", typed("application/vnd.oasis.opendocument.formula"), "formula or a chart of OpenDocument"},
		{"a.odb", typed("application/vnd.oasis.opendocument.database"), "OpenDocument file of a kind that is not read"},
		{"a.vsdx", zipOf("[Content_Types].xml", "visio/document.xml"), "drawing of Visio. Export it as PDF"},
		{"a.xps", zipOf("[Content_Types].xml", "FixedDocSeq.fdseq"), "XPS document. Export it as PDF"},
		{"a.one", binary, "OneNote. Export it as PDF or Word"},
		{"a.mobi", binary, "book for Kindle. Convert it to EPUB"},
		{"a.djvu", "AT&TFORM\x00\x00\x00\x00DJVU" + binary, "DjVu. Convert it to a PDF with text"},
		{"a.heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00" + binary, "Pictures are not read. Run OCR"},
		{"a.gif", "GIF89a\x01\x00\x01\x00" + binary, "Pictures are not read. Run OCR"},
		{"a.mp3", "ID3\x03\x00\x00\x00\x00\x00\x00" + binary, "Transcribe it"},
		{"a.rar", "Rar!\x1a\x07\x01\x00" + binary, "Archives are not unpacked"},
		{"a.pst", "!BDN" + binary, "mailbox of Outlook. Export its messages"},
		{"winmail.dat", "\x78\x9f\x3e\x22" + binary, "winmail.dat of Outlook"},
		{"a.sqlite", "SQLite format 3\x00" + binary, "database. Export its tables as CSV"},
		{"a.parquet", "PAR1" + binary, "table in a binary format. Export its tables as CSV"},
		{"a.docx", zipOf("readme.txt"), "it is damaged or something else"},
	} {
		_, err := document.Sniff(tt.name, "", strings.NewReader(tt.raw), int64(len(tt.raw)))
		if _, ok := errors.AsType[*document.UnsupportedError](err); !ok || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want an UnsupportedError with %q", tt.name, err, tt.says)
		}
	}
}

// A media type is known unless an upload declared it for a text.
func TestKnownMediaTypes(t *testing.T) {
	t.Parallel()
	for mediaType, want := range map[string]bool{"text/plain": true, "text/html": true, "text/x-python": true,
		"text/x-dockerfile": true, "application/pdf": true, "application/x-ipynb+json": true, "text/qzora": false} {
		if got := document.IsKnown(mediaType); got != want {
			t.Errorf("%s: got %v, want %v", mediaType, got, want)
		}
	}
}
