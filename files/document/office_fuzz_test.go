package document_test

import (
	"os"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func FuzzDOCX(f *testing.F)  { fuzz(f, document.DOCX, "*.docx") }
func FuzzPPTX(f *testing.F)  { fuzz(f, document.PPTX, "*.pptx") }
func FuzzXLSX(f *testing.F)  { fuzz(f, document.XLSX, "*.xlsx") }
func FuzzODT(f *testing.F)   { fuzz(f, document.ODT, "*.odt") }
func FuzzODS(f *testing.F)   { fuzz(f, document.ODS, "*.ods") }
func FuzzODP(f *testing.F)   { fuzz(f, document.ODP, "*.odp") }
func FuzzEPUB(f *testing.F)  { fuzz(f, document.EPUB, "*.epub") }
func FuzzIPYNB(f *testing.F) { fuzz(f, document.IPYNB, "*.ipynb") }

// fuzz checks that a reader returns a text or an *UnreadableError, whatever it reads.
func fuzz(f *testing.F, read document.Reader, seeds string) {
	for _, path := range fixtures(f, seeds) {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkRead(t, read, raw)
	})
}

// FuzzWordXML, FuzzODFXML and FuzzSlideXML change a part of an archive, not the archive.
func FuzzWordXML(f *testing.F) { fuzzPart(f, document.DOCX, "*.docx", "word/document.xml") }

func FuzzODFXML(f *testing.F) { fuzzPart(f, document.ODT, "*.odt", "content.xml") }

func FuzzSlideXML(f *testing.F) { fuzzPart(f, document.PPTX, "*.pptx", "ppt/slides/slide1.xml") }

func fuzzPart(f *testing.F, read document.Reader, seeds, part string) {
	paths := fixtures(f, seeds)
	archives := make([][]byte, len(paths))
	for i, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		archives[i] = raw
		f.Add(unzipped(f, raw, part), uint(i)) //nolint:gosec // an index
	}
	f.Fuzz(func(t *testing.T, changed []byte, n uint) {
		raw := rezipped(t, archives[n%uint(len(archives))], part, changed)
		checkRead(t, read, raw)
	})
}
