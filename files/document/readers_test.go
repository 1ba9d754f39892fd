package document_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loci-memory/loci/files/document"
)

func TestReadersReadText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ claim, mediaType, raw, want, charset string }{
		{"CSV stays as it is", "text/csv", "a,\"b\r\nc\"\r\n1,2\r\n", "a,\"b\nc\"\n1,2\n", "utf-8"},
		{"CSV as Excel exports it", "text/csv", utf16LE("name\tgröße\r\nx\t1\r\n"), "name\tgröße\nx\t1\n", "utf-16le"},
		{"CSV with a mark", "text/csv", "\ufeffa;b\n", "a;b\n", "utf-8"},
		{"CSV in Latin-1", "text/csv", "Gr\xf6\xdfe;M\xfcnchen;K\xf6ln;f\xfcr\n", "Größe;München;Köln;für\n", "windows-1252"},
		{"JSON lines", "application/jsonl", "{}\n{}\n", "{}\n{}\n", "utf-8"},
		{"source code keeps its tabs and empty lines", "text/x-go", "\tif a {\n\n\n\t}\n", "\tif a {\n\n\n\t}\n", "utf-8"},
		{"a text without a last line end", "text/plain", "a", "a", "utf-8"},
		{"nothing", "text/plain", "", "", "utf-8"},
		{"HTML in the charset that it declares", "text/html", "<meta charset=koi8-r><p>\xf0\xd2\xc9", "При\n", "koi8-r"},
		{"XHTML", "application/xhtml+xml", `<?xml version="1.0" encoding="ISO-8859-2"?><html><body><p>` + "\xb3" +
			`</p></body></html>`,
			"ł\n", "iso-8859-2"},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			for _, body := range []io.Reader{strings.NewReader(tt.raw), iotest.OneByteReader(strings.NewReader(tt.raw))} {
				got, err := reader.Read(t.Context(), document.Input{MediaType: tt.mediaType, SizeBytes: int64(len(tt.raw)),
					Body: body})
				if err != nil || got.Text != tt.want || got.Charset != tt.charset || got.Pages != nil {
					t.Errorf("got %q in %s, pages %v, %v, want %q in %s", got.Text, got.Charset, got.Pages, err, tt.want, tt.charset)
				}
			}
		})
	}
}

// TestReadersReadStreams: a body without ReadAt is read like a file.
func TestReadersReadStreams(t *testing.T) {
	t.Parallel()
	for ext, mediaType := range officeTypes {
		for _, path := range fixtures(t, "*"+ext) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			input := document.Input{MediaType: mediaType, SizeBytes: int64(len(raw)), Body: strings.NewReader(string(raw))}
			want, err := reader.Read(t.Context(), input)
			if err != nil {
				t.Fatal(err)
			}
			input.Body = iotest.HalfReader(strings.NewReader(string(raw)))
			if got, err := reader.Read(t.Context(), input); err != nil || got.Text != want.Text {
				t.Errorf("%s: got %.60q, %v, want %.60q", path, got.Text, err, want.Text)
			}
			input.Body = iotest.ErrReader(errDisk)
			if _, err := reader.Read(t.Context(), input); !errors.Is(err, errDisk) || isUnreadable(err) {
				t.Errorf("%s: got %v, want %v", path, err, errDisk)
			}
		}
	}
}

func TestInputsAreToldApart(t *testing.T) {
	t.Parallel()
	for mediaType, want := range map[string][3]bool{ // HTML, complex, PDF
		"text/html":             {true, false, false},
		"application/xhtml+xml": {true, false, false},
		"application/pdf":       {false, true, true},
		"text/rtf":              {false, true, false},
		officeTypes[".docx"]:    {false, true, false},
		officeTypes[".ipynb"]:   {false, true, false},
		"text/plain":            {false, false, false},
		"":                      {false, false, false},
	} {
		input := document.Input{MediaType: mediaType}
		if got := [3]bool{input.IsHTML(), input.IsComplex(), input.IsPDF()}; got != want {
			t.Errorf("%q: HTML, complex, PDF: %v, want %v", mediaType, got, want)
		}
	}
}
