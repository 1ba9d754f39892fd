package document_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestUnreadableDocumentsSayWhatToDo(t *testing.T) {
	t.Parallel()
	ole := func(name string) []byte {
		raw := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 70<<10)...)
		for i := range name {
			raw = append(raw, name[i], 0)
		}
		return append(raw, make([]byte, 4096)...)
	}
	for claim, c := range map[string]struct {
		mediaType string
		raw       []byte
		says      string
	}{
		"an encrypted Word document is protected": {officeTypes[".docx"], ole("EncryptedPackage"), "password"},
		"an encrypted workbook is protected":      {officeTypes[".xlsx"], ole("EncryptedPackage"), "password"},
		"what Office encrypted is protected":      {"application/x-ole-storage", ole("EncryptedPackage"), "password"},
		"an old document is to be saved anew":     {"application/x-ole-storage", ole("WordDocument"), ".docx"},
		"a document without text says so": {officeTypes[".docx"], zipped(t,
			entries{"word/document.xml": text(wordHead + "<w:p/>" + wordTail)}), "no text"},
		"another archive is not a document": {officeTypes[".docx"], zipped(t, entries{"a.txt": text("x")}),
			"damaged"},
		"another archive is not a workbook": {officeTypes[".xlsx"], zipped(t, entries{"a.txt": text("x")}),
			"damaged"},
		"RTF is to be saved anew": {"text/rtf", []byte(`{\rtf1 hello}`), "DOCX or plain text"},
		"a sheet of a damaged workbook is not read": {officeTypes[".xlsx"], zipped(t,
			entries{"xl/workbook.xml": text("<workbook")}), "damaged"},
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

// TestAFileThatCannotBeReadIsNotItsFault: an I/O error says nothing about the document, which is read again later.
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

// TestDamagedDocumentsDoNotPanic reads copies of each fixture in which bytes are changed or the end is missing.
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
					checkRead(t, readerOf(t, path), damaged(raw, seed))
				}
				if ext != ".ipynb" {
					for seed := range uint64(copies) {
						checkRead(t, readerOf(t, path), damagedParts(t, raw, seed))
					}
				}
			})
		}
	}
}

// damaged returns a copy with bytes changed; every third is also cut short.
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

// damagedParts changes bytes in the parts of an archive and packs them again, so that its checksums are right.
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

// rezipped returns an archive with one part changed.
func rezipped(t testing.TB, raw []byte, name string, changed []byte) []byte {
	t.Helper()
	return repacked(t, raw, func(partName string, part []byte) []byte {
		if partName == name {
			return changed
		}
		return part
	})
}

// unzipped returns one part of an archive.
func unzipped(t testing.TB, raw []byte, name string) (found []byte) {
	t.Helper()
	repacked(t, raw, func(partName string, part []byte) []byte {
		if partName == name {
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
	var b bytes.Buffer
	packer := zip.NewWriter(&b)
	for _, f := range z.File {
		body, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		w, err := packer.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(change(f.Name, part))
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// swapped swaps tags of a part, so that it often stays XML, or changes bytes.
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
