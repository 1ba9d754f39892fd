package document_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestSniffAcceptsText(t *testing.T) {
	t.Parallel()
	const octets = "application/octet-stream"
	for _, tt := range []struct{ name, file, declared, head, want string }{
		{"Markdown by its extension", "a.MD", octets, "# Title\n", "text/markdown"},
		{"Python by its extension", "src/a.py", "", "import os\n", "text/x-python"},
		{"JSON", "a.json", "text/plain", `{"a": 1}`, "application/json"},
		{"JSON lines", "a.jsonl", octets, "{}\n{}\n", "application/jsonl"},
		{"CSV", "a.csv", "application/vnd.ms-excel", "a,b\n1,2\n", "text/csv"},
		{"a file by its whole name", "Dockerfile", octets, "FROM scratch\n", "text/x-dockerfile"},
		{"an unknown extension by its content", "page.xyz", octets, "<!DOCTYPE html><html><body>x</body></html>", "text/html"},
		{"a script by its first line", "run", octets, "#!/usr/bin/env python3\nprint(1)\n", "text/x-python"},
		{"an unknown extension as declared", "a.foo", "text/x-foo; charset=utf-8", "hello there, friend\n", "text/x-foo"},
		{"a declared type that is not text is ignored", "a.foo", "image/png", "hello there, friend\n", "text/plain"},
		{"nothing known", "notes", "", "hello there, friend\n", "text/plain"},
		{"an empty file", "empty", octets, "", "text/plain"},
		{"an empty file by its extension", "empty.py", octets, "", "text/x-python"},
		{"a text that begins as a bitmap does", "cars.txt", octets, "BMW and others make cars.\n", "text/plain"},
		{"a text that begins as a program does", "a.txt", octets, "MZ is how programs begin\n", "text/plain"},
		{"colours in a log", "a.log", octets, "\x1b[31merror\x1b[0m it broke\n", "text/plain"},
		{"form feeds", "rfc.txt", octets, "page one\n\fpage two\n", "text/plain"},
		{"a rare NUL", "a.log", octets, "a line that is long enough\n\x00another line\n", "text/plain"},
		{"a character cut where the head ends", "a.txt", octets, strings.Repeat("ü", 2048)[:4095], "text/plain"},
		{"a PDF, though all of it is ASCII", "a.txt", octets, "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "application/pdf"},
		{"an image that is text", "a.svg", octets, `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := document.Sniff(tt.file, tt.declared, []byte(tt.head)); err != nil || got != tt.want {
				t.Errorf("Sniff(%q, %q, %q) = %q, %v, want %q", tt.file, tt.declared, tt.head, got, err, tt.want)
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

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestSniffRefusesWhatIsNotText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, head, want string }{
		{"a PNG", pngImage(), "image/png"},
		{"a DOCX", zipOf("[Content_Types].xml", "_rels/.rels", "word/document.xml"), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a ZIP", zipOf("a.txt"), "application/zip"},
		{"a gzip", gzipped(strings.Repeat("text ", 50)), "application/gzip"},
		{"an ELF", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00" + strings.Repeat("\x00\x01", 50), "application/x-executable"},
		{"RTF", `{\rtf1\ansi Hello}`, "text/rtf"},
		{"nothing known", strings.Repeat("\x01\x02\x9c\x00\x00\xf8\x90", 50), "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			media, err := document.Sniff("renamed.txt", "text/plain", []byte(tt.head))
			var unsupported *document.UnsupportedError
			if !errors.As(err, &unsupported) {
				t.Fatalf("Sniff = %q, %v, want an UnsupportedError", media, err)
			}
			want := "Unsupported file type: " + tt.want + " (filename: renamed.txt). Supported types: "
			if got := err.Error(); !strings.HasPrefix(got, want) {
				t.Errorf("Sniff: %q, want %q…", got, want)
			}
		})
	}
}
