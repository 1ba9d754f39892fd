package document_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/document"
)

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/pdf", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func readPDF(r document.Readers, raw []byte) (document.Text, error) {
	return r.Read(context.Background(), document.Input{MediaType: "application/pdf", SizeBytes: int64(len(raw)),
		Body: bytes.NewReader(raw)})
}

// paged returns a text with a mark before each line that begins a page.
func paged(text document.Text) string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(text.Text, "\n") {
		if page := slices.Index(text.Pages, i+1); page >= 0 {
			fmt.Fprintf(&b, "== page %d\n", page+1)
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestPDF(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, golden string }{
		{"printed by Chromium: Unicode, ligatures, hyphens in two columns, a table", "chromium", "chromium"},
		{"exported by LibreOffice", "libreoffice", "harbour"},
		{"rewritten by Ghostscript", "ghostscript", "harbour"},
		{"drawn anew by cairo", "cairo", "harbour"},
		{"with its objects in streams", "object-streams", "harbour"},
		{"linearized", "linearized", "harbour"},
		{"encrypted by RC4 with an owner's password alone", "rc4-owner", "harbour"},
		{"encrypted by AES-256 with an owner's password alone", "aes-owner", "harbour"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readPDF(reader, fixture(t, tt.file+".pdf"))
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, "pdf/"+tt.golden+".txt", paged(got))
		})
	}
}

const damagedPDF = "The PDF is damaged: no page of it can be found. Open it in a PDF program, save it again, and " +
	"upload that."

func TestPDFsWithoutTextSayWhy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, want string }{
		{"rc4-user", "The PDF is encrypted and opens only with a password. Save it without the password and upload that."},
		{"aes-user", "The PDF is encrypted and opens only with a password. Save it without the password and upload that."},
		{"scanned", "The file holds no text: its 3 pages are images or empty. If it was scanned, run OCR on it and " +
			"upload the result. Or ask the operator to set LOCI_OCR_COMMAND, which has them read."},
		{"blank", "The file holds no text: its page is an image or empty. If it was scanned, run OCR on it and upload " +
			"the result. Or ask the operator to set LOCI_OCR_COMMAND, which has them read."},
		{"truncated", damagedPDF},
		{"garbage", damagedPDF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readPDF(reader, fixture(t, tt.name+".pdf"))
			if !isUnreadable(err) || err.Error() != tt.want {
				t.Errorf("got %q, %v, want %q", got.Text, err, tt.want)
			}
		})
	}
}

// Reading ends for a page tree that leads back to itself, for a million missing pages, and for trees as deep as the
// file is long.
func TestHostilePDFsEnd(t *testing.T) {
	t.Parallel()
	const catalog = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
	const trailer = "trailer<</Root 1 0 R>>\n"
	for name, raw := range map[string]string{
		"a loop of pages": catalog + "2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>endobj\n" + trailer,
		"a loop through two": catalog + "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 2>>endobj\n3 0 obj<" +
			"</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>endobj\n" + trailer,
		"a million pages": catalog + "2 0 obj<</Type/Pages/Kids[]/Count 1000000>>endobj\n" + trailer,
		"a deep array": catalog + "2 0 obj<</Type/Pages/Kids " + strings.Repeat("[", 200_000) + "/Count 1>>endobj\n" +
			trailer,
		"a deep dictionary": catalog + "2 0 obj" + strings.Repeat("<</A", 200_000) + "endobj\n" + trailer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := readPDF(reader, []byte(raw)); !isUnreadable(err) {
				t.Errorf("got %d pages, %v, want an UnreadableError", len(got.Pages), err)
			}
		})
	}
}

func TestMissingPagesAreEmpty(t *testing.T) {
	t.Parallel()
	got, err := readPDF(reader, []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"+
		"2 0 obj<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count 3>>endobj\n"+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 9 0 R>>>>/Contents 6 0 R>>endobj\n"+
		"5 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Font<</F 9 0 R>>>>/Contents 6 0 R>>endobj\n"+
		"6 0 obj<</Length 38>>stream\nBT /F 9 Tf 9 9 Td (a word) Tj ET      \nendstream endobj\n"+
		"9 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n"))
	if want := "== page 1\na word\n\n== page 2\n\n== page 3\na word\n"; err != nil || paged(got) != want {
		t.Errorf("got %q, %v, want %q", paged(got), err, want)
	}
}

func TestDamagedPDFsGiveTextOrASentence(t *testing.T) {
	t.Parallel()
	whole, readable := fixture(t, "libreoffice.pdf"), make([]bool, scale.Of(12, 60))
	t.Run("copies", func(t *testing.T) {
		for seed := range readable {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(uint64(seed), 1))
				raw := bytes.Clone(whole)
				for range 1 + seed/6 {
					raw[random.IntN(len(raw))] ^= byte(1 + random.IntN(255))
				}
				got, err := readPDF(reader, raw)
				if err != nil && !isUnreadable(err) || !utf8.ValidString(got.Text) || strings.Contains(got.Text, "\x00") {
					t.Errorf("got %q, %v", got.Text, err)
				}
				readable[seed] = strings.Contains(got.Text, "harbourmaster")
			})
		}
	})
	n := 0
	for _, ok := range readable {
		if ok {
			n++
		}
	}
	t.Logf("%d of %d damaged copies are read", n, len(readable))
	if n < len(readable)/2 {
		t.Errorf("%d of %d damaged copies are read, want half of them", n, len(readable))
	}
}

func TestCompiledProgramsAreKeptWhereNobodyElseWrites(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir string
		want      bool
	}{
		{"a directory of our own", t.TempDir(), true},
		{"one that is not there yet", filepath.Join(t.TempDir(), "a", "cache"), true},
		{"none", "", false},
		{"one that cannot be made", "/dev/null/cache", false},
		{"one that all may write to", shared, false},
	} {
		if got := document.Keeps(document.Readers{CacheDir: tt.dir}); got != tt.want {
			t.Errorf("%s: kept %t, want %t", tt.name, got, tt.want)
		}
	}
	if cached, err := os.ReadDir(shared); err != nil || len(cached) > 0 {
		t.Errorf("what others could replace is kept: %v, %v", cached, err)
	}
}
