package document_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gabriel-vasile/mimetype"

	"github.com/loci-memory/loci/files/document"
)

// officeTypes maps extension → media type of the fixtures.
var officeTypes = map[string]string{
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".odt":  "application/vnd.oasis.opendocument.text",
	".odp":  "application/vnd.oasis.opendocument.presentation",
	".ods":  "application/vnd.oasis.opendocument.spreadsheet",
	".epub": "application/epub+zip", ".ipynb": "application/x-ipynb+json",
}

// fixtures returns the paths of documents that other programs made, see testdata/office/README.md.
func fixtures(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "office", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func readerOf(t testing.TB, path string) document.Reader {
	t.Helper()
	read, ok := document.Office(officeTypes[filepath.Ext(path)])
	if !ok {
		t.Fatalf("no reader of %s", path)
	}
	return read
}

func TestOfficeGoldens(t *testing.T) {
	t.Parallel()
	found := 0
	for ext := range officeTypes {
		for _, path := range fixtures(t, "*"+ext) {
			found++
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				compareGolden(t, path)
			})
		}
	}
	if found < len(officeTypes) {
		t.Errorf("%d fixtures, want at least one of each of %d formats", found, len(officeTypes))
	}
}

func compareGolden(t *testing.T, path string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := readerOf(t, path)(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	checkMarkdown(t, text)
	got := text.Text
	if text.Pages != nil {
		got += fmt.Sprintf("\n(pages begin on lines %v)\n", text.Pages)
	}
	checkGolden(t, filepath.Join("office", filepath.Base(path)+".golden"), got)
}

// TestOfficeIsToldByItsBeginning: the media type that sniffing finds in the first bytes has a reader.
func TestOfficeIsToldByItsBeginning(t *testing.T) {
	t.Parallel()
	for ext, want := range officeTypes {
		for _, path := range fixtures(t, "*"+ext) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			head := raw[:min(len(raw), 4096)]
			got := mimetype.Detect(head).String()
			if ext != ".ipynb" && got != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
	}
}
