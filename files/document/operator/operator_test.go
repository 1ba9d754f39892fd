package operator_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
	"github.com/loci-memory/loci/files/document/documenttest"
	"github.com/loci-memory/loci/files/document/operator"
	"github.com/loci-memory/loci/files/sandbox"
)

// TestMain also runs the programs of the processes that read documents.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "launch" {
		sandbox.Launch(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == "read" {
		if err := child.Main(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reader returns a reader with these commands; "" for none.
func reader(t *testing.T, ocr, convert string) *operator.Reader {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := sandbox.NewHost(t.Context(), "", self, "launch")
	if err != nil {
		t.Fatal(err)
	}
	r := &operator.Reader{Documents: &child.Reader{Command: []string{self, "read"}, CPU: 5 * time.Minute,
		Document: documenttest.Readers()}}
	command := func(setting, value string) *operator.Command {
		if value == "" {
			return nil
		}
		line, err := operator.Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		return &operator.Command{Setting: setting, Line: line, Host: host, Slots: operator.NewSlots()}
	}
	r.OCR, r.Convert = command(document.OCRSetting, ocr), command(document.ConvertSetting, convert)
	return r
}

func scanned(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("../testdata/pdf/scanned.pdf")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func input(mediaType string, raw []byte) document.Input {
	return document.Input{MediaType: mediaType, SizeBytes: int64(len(raw)), Body: struct{ *bytes.Buffer }{
		bytes.NewBuffer(raw)}}
}

const pdf = "application/pdf"

func TestCommandsAreSplitAsAShellDoes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		`sh -c "echo 'a b'" c\ d '\'`: {"sh", "-c", "echo 'a b'", "c d", `\`},
		"  sh\t{input}  ''":           {"sh", "{input}", ""},
	} {
		got, err := operator.Parse(line)
		if err != nil || !filepath.IsAbs(got[0]) || !slices.Equal(got[1:], want[1:]) {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"", " ", `sh "`, `sh \`, "no-such-program-here x"} {
		if got, err := operator.Parse(line); err == nil {
			t.Errorf("%q: got %q, want an error", line, got)
		}
	}
}

// The three ways to give a program its file, and to take its output.
func TestProgramsReadPictures(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"streams":           `sh -c 'printf "got "; cat'`,
		"a path":            `sh -c 'printf "got "; cat $1' sh {input}`,
		"a path and a file": `sh -c 'printf "got "> $2/text.txt; cat $1 >> $2/text.txt; echo noise' sh {input} {outdir}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := reader(t, command, "").Read(t.Context(), input("image/png", []byte("a picture")))
			want := document.Text{Text: "[Read by OCR]\ngot a picture\n", Omitted: []document.Omission{},
				ReadBy: []document.ReadBy{{Kind: "OCR", Program: "sh"}}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v, wanted - got +:\n%s", err, diff)
			}
		})
	}
}

// A page that OCR read before the server was killed is not read again, and the progress is told.
func TestOCRGoesOnAfterTheKeptPages(t *testing.T) {
	t.Parallel()
	r := reader(t, `sh -c 'head -c 4 | tail -c 3; echo " page"'`, "")
	in := input(pdf, scanned(t))
	kept, told := map[int]string{}, []int{}
	in.Log = &document.PageLog{Kept: map[int]string{2: "kept page"},
		Read: func(read, total int) { told = append(told, read, total) },
		Keep: func(_ context.Context, page int, text string) error { kept[page] = text; return nil }}
	got, err := r.Read(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := "[Read by OCR]\nPNG page\n\n[Read by OCR]\nkept page\n\n[Read by OCR]\nPNG page\n"
	if got.Text != want || !slices.Equal(got.Pages, []int{1, 4, 7}) || len(got.Omitted) > 0 || len(got.Unread) > 0 {
		t.Errorf("got %+v, want %q", got, want)
	}
	if want := map[int]string{1: "PNG page\n", 3: "PNG page\n"}; !cmp.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if want := []int{1, 3, 2, 3, 3, 3}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	short, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	in = input(pdf, scanned(t))
	in.Log = &document.PageLog{Kept: map[int]string{1: "kept page"}}
	if _, err := r.Read(short, in); !errors.Is(err, document.ErrGoesOn) {
		t.Errorf("without time for another page: %v, want ErrGoesOn", err)
	}
}

// Pages that OCR cannot read are named with the reason, and the others are read.
func TestPagesThatFailAreNamed(t *testing.T) {
	t.Parallel()
	r := reader(t, `sh -c 'echo bad page >&2; exit 4'`, "")
	in := input(pdf, scanned(t))
	in.Log = &document.PageLog{Kept: map[int]string{1: "kept page"}}
	got, err := r.Read(t.Context(), in)
	want := []document.Omission{{Kind: "page without text", Count: 2, Where: "pages 2–3",
		Remedy: "sh failed: it ended with exit status 4: bad page"}}
	if diff := cmp.Diff(want, got.Omitted); diff != "" || err != nil || !strings.Contains(got.Text, "kept page") {
		t.Errorf("%v, %q, wanted - got +:\n%s", err, got.Text, diff)
	}
}

// Each way in which a program fails has an error that says so. Nothing of its output is taken.
func TestProgramsThatFailSayWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ocr, convert string
		change       func(*operator.Command)
		mediaType    string
		says         string
	}{
		"it crashes": {ocr: `sh -c 'echo half; kill -SEGV $$'`, mediaType: "image/png", says: "it ended with exit status"},
		"it fails": {ocr: `sh -c 'echo half; echo "no language xyz" >&2; exit 1'`, mediaType: "image/png",
			says: "The program sh of LOCI_OCR_COMMAND did not read the file: it ended with exit status 1: no language xyz."},
		"it does not end": {ocr: `sh -c 'while :; do :; done'`, mediaType: "image/png",
			change: func(c *operator.Command) { c.CPU = time.Second }, says: "it took more than 1s of processor time"},
		"it prints without end": {ocr: `sh -c 'while :; do echo 0123456789; done'`, mediaType: "image/png",
			says: "it printed too much"},
		"it prints no text": {ocr: `sh -c 'printf "\377\376"'`, mediaType: "image/png", says: "is no text in UTF-8"},
		"it prints nothing": {ocr: `sh -c 'true'`, mediaType: "image/png", says: "no text that sh can read"},
		"it is gone": {ocr: `sh`, mediaType: "image/png", says: "could not be run",
			change: func(c *operator.Command) { c.Line[0] = "/usr/bin/gone" }},
		"it writes no file": {convert: `sh -c 'true' {outdir}`, mediaType: "application/msword", says: "it wrote no file"},
		"it writes another format": {convert: `sh -c 'echo text > $1/a.docx' sh {outdir}`, mediaType: "application/msword",
			says: "what it wrote is not a .docx file"},
		"it writes an empty file": {convert: `sh -c ': > $1/a.docx' sh {outdir}`, mediaType: "application/msword",
			says: "what it wrote is not a .docx file"},
		"it writes a link": {convert: `sh -c 'ln -s /etc/passwd $1/a.docx' sh {outdir}`, mediaType: "application/msword",
			says: "its output cannot be read"},
		"OCR that is gone, for pages": {ocr: `sh`, mediaType: pdf, says: "could not be run",
			change: func(c *operator.Command) { c.Line[0] = "/usr/bin/gone" }},
		"OCR that reads no page": {ocr: `sh -c 'exit 5'`, mediaType: pdf, says: "sh failed: it ended with exit status 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, raw := reader(t, tt.ocr, tt.convert), []byte("bytes")
			if tt.mediaType == pdf {
				raw = scanned(t)
			}
			if tt.change != nil {
				tt.change(r.OCR)
			}
			got, err := r.Read(t.Context(), input(tt.mediaType, raw))
			if _, ok := errors.AsType[*document.UnreadableError](err); !ok || !strings.Contains(err.Error(), tt.says) ||
				got.Text != "" {
				t.Errorf("got %q, %v, want an error that says %q", got.Text, err, tt.says)
			}
		})
	}
}

// A program that only waits may be tried again: perhaps the machine was busy.
func TestAProgramThatWaitsIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := reader(t, `sleep 10000`, "")
	r.OCR.Patience = time.Second
	if _, err := r.Read(t.Context(), input("image/png", []byte("x"))); !errors.Is(err, document.ErrStuck) {
		t.Errorf("got %v, want ErrStuck", err)
	}
}

// What a converter writes is read as if it had been uploaded.
func TestConvertedDocumentsAreRead(t *testing.T) {
	t.Parallel()
	r := reader(t, "", `sh -c 'cat $1 > $2/other.$3; echo log > $2/log.txt' sh {input} {outdir} {format}`)
	docx, err := filepath.Glob("../testdata/office/*.docx")
	if err != nil || len(docx) == 0 {
		t.Fatal("there is no .docx: ", err)
	}
	raw, err := os.ReadFile(docx[0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Read(t.Context(), input("application/msword", raw))
	want, wantErr := document.DOCX(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || wantErr != nil || got.Text != want.Text || got.ReadBy[0].String() != "conversion (sh)" {
		t.Errorf("got %q, %v, %v, want %q, %v", got.Text, got.ReadBy, err, want.Text, wantErr)
	}
}

// office returns a Word document with two pictures, the second of which is shown twice.
func office(t *testing.T, picture []byte) []byte {
	t.Helper()
	const (
		schemas = "http://schemas.openxmlformats.org/"
		part    = `<w:p><w:r><w:drawing><pic:pic><a:blip r:embed="%s"/></pic:pic></w:drawing></w:r></w:p>`
		link    = `<Relationship Id="%[1]s" Type="` + schemas + `x/image" Target="media/%[1]s.png"/>`
	)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{
		"word/document.xml": `<w:document xmlns:w="` + schemas + `wordprocessingml/2006/main" xmlns:r="` + schemas +
			`officeDocument/2006/relationships" xmlns:a="` + schemas + `drawingml/2006/main" xmlns:pic="` + schemas +
			`drawingml/2006/picture"><w:body>` + fmt.Sprintf(strings.Repeat(part, 3), "one", "two", "two") +
			`</w:body></w:document>`,
		"word/_rels/document.xml.rels": `<Relationships xmlns="` + schemas + `package/2006/relationships">` +
			fmt.Sprintf(link, "one") + fmt.Sprintf(link, "two") + `</Relationships>`,
		"word/media/one.png": string(picture), "word/media/two.png": string(picture) + "2",
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

// Pictures in documents are read by OCR, each once; one that an earlier attempt read is not read again. A converted
// document has its pictures read, too.
func TestPicturesInDocumentsAreRead(t *testing.T) {
	t.Parallel()
	raw := office(t, []byte("\x89PNG\r\n\x1a\n"))
	const ocr = `sh -c 'head -c 4 | tail -c 3; echo " text"'`
	in := input(word, raw)
	kept := map[int]string{}
	in.Log = &document.PageLog{Kept: map[int]string{1_000_000: "kept text"},
		Keep: func(_ context.Context, page int, text string) error { kept[page] = text; return nil }}
	got, err := reader(t, ocr, "").Read(t.Context(), in)
	block := func(text string) string { return "[Picture, read by OCR]\n" + text + "\n[End of the picture]\n" }
	want := document.Text{Text: block("kept text") + "\n" + block("PNG text") + "\n" + block("PNG text"),
		Omitted: []document.Omission{}, ReadBy: []document.ReadBy{{Kind: "OCR", Program: "sh",
			Where: "pictures: paragraphs 1–3"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, wanted - got +:\n%s", err, diff)
	}
	if want := map[int]string{1_000_001: "PNG text\n"}; !cmp.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	convert := `sh -c 'cat $1 > $2/other.$3' sh {input} {outdir} {format}`
	got, err = reader(t, ocr, convert).Read(t.Context(), input("application/msword", raw))
	if err != nil || !strings.Contains(got.Text, "PNG text") || len(got.ReadBy) != 2 {
		t.Errorf("converted: %+v, %v", got, err)
	}
	got, err = reader(t, `sh -c 'exit 3'`, "").Read(t.Context(), input(word, raw))
	if err == nil || !strings.Contains(err.Error(), "3 pictures without text") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a program that fails: %+v, %v", got, err)
	}
}

// The recipe with tesseract reads pictures in documents.
func TestTesseractReadsPicturesInDocuments(t *testing.T) {
	t.Parallel()
	installed(t, "tesseract")
	ready, err := documenttest.Readers().Prepare(pdf)
	if err != nil {
		t.Fatal(err)
	}
	raw := scanned(t)
	page, err := ready.Image(document.Input{MediaType: pdf, SizeBytes: int64(len(raw)), Body: bytes.NewReader(raw)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reader(t, "tesseract - - -l eng", "").Read(t.Context(), input(word, office(t, page)))
	if err != nil || strings.Count(got.Text, "[Picture, read by OCR]\nHarbour rules\n") != 3 {
		t.Errorf("got %q, %v", got.Text, err)
	}
}

// installed skips a test whose program is not installed.
func installed(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed: %v", program, err)
	}
}

// The recipe with tesseract reads scans.
func TestTesseractReadsScans(t *testing.T) {
	t.Parallel()
	installed(t, "tesseract")
	for _, command := range []string{"tesseract - - -l eng", "tesseract {input} {outdir}/text -l eng"} {
		got, err := reader(t, command, "").Read(t.Context(), input(pdf, scanned(t)))
		if err != nil || !strings.HasPrefix(got.Text, "[Read by OCR]\nHarbour rules\n") || len(got.Pages) != 3 {
			t.Errorf("%s: got %q, %v", command, got.Text, err)
		}
	}
}

// The recipe with LibreOffice converts old formats.
func TestLibreOfficeConverts(t *testing.T) {
	t.Parallel()
	installed(t, "soffice")
	r := reader(t, "", "soffice --headless --convert-to {format} --outdir {outdir} {input}")
	if !r.Convert.Host.OwnTmp {
		t.Skip("LibreOffice does not start here, because the system lets this user make no mounts")
	}
	got, err := r.Read(t.Context(), input("text/rtf", []byte(`{\rtf1\ansi The harbour opens at {\b seven}.\par}`)))
	if err != nil || !strings.Contains(got.Text, "The harbour opens at seven.") {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if _, err := r.Read(t.Context(), input("application/vnd.ms-outlook", []byte("\xd0\xcf\x11\xe0"))); err == nil ||
		!strings.Contains(err.Error(), "LOCI_CONVERT_COMMAND did not read the file") {
		t.Errorf("a message of Outlook: %v, want that the program did not read it", err)
	}
}
