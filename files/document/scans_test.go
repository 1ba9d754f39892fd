package document_test

import (
	"bytes"
	"errors"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

// Pages that OCR reads stand where they are in the file, below a line that says so.
func TestPagesReadByOCRTakeTheirPlaces(t *testing.T) {
	t.Parallel()
	unread := document.Omission{Kind: "page without text", Count: 2, Where: "pages 2, 4", Remedy: "LOCI_OCR_COMMAND"}
	text := document.Text{Text: "One\n\n\nThree\n\nA comment.\n", Pages: []int{1, 3, 4, 6}, Unread: []int{2, 4},
		Omitted: []document.Omission{{Kind: "stamp", Count: 1}, unread}}
	got, err := text.WithPages(map[int]string{2: "Two  \r\nlines\f", 4: "Four"}, "tesseract", "")
	want := document.Text{Pages: []int{1, 3, 7, 9}, Omitted: text.Omitted[:1],
		Text:   "One\n\n[Read by OCR]\nTwo\nlines\n\nThree\n\n[Read by OCR]\nFour\n\nA comment.\n",
		ReadBy: []document.ReadBy{{Kind: "OCR", Program: "tesseract", Where: "pages 2, 4"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, wanted - got +:\n%s", err, diff)
	}
	got, err = text.WithPages(map[int]string{2: "Two", 4: " \n"}, "tesseract", "tesseract found no text")
	omitted := []document.Omission{text.Omitted[0],
		{Kind: "page without text", Count: 1, Where: "page 4", Remedy: "tesseract found no text"}}
	if diff := cmp.Diff(omitted, got.Omitted); diff != "" || err != nil || !slices.Equal(got.Unread, []int{4}) {
		t.Errorf("page 4 stays unread: %v, %v, wanted - got +:\n%s", err, got.Unread, diff)
	}
	blank := document.Text{Text: "\n\n", Pages: []int{1, 2}, Unread: []int{1, 2}}
	_, err = blank.WithPages(nil, "tesseract", "tesseract found no text")
	if _, ok := errors.AsType[*document.UnreadableError](err); !ok || !strings.Contains(err.Error(), "found no text") {
		t.Errorf("a file without any text: %v", err)
	}
}

func TestPicturesHaveTheTextThatOCRReads(t *testing.T) {
	t.Parallel()
	for read, want := range map[string]document.Text{
		"Hello\n\f":      {Text: "[Read by OCR]\nHello\n"},
		"One\n\fTwo\n\f": {Text: "[Read by OCR]\nOne\n\n[Read by OCR]\nTwo\n", Pages: []int{1, 4}},
	} {
		want.Omitted, want.ReadBy = []document.Omission{}, []document.ReadBy{{Kind: "OCR", Program: "tesseract"}}
		got, err := document.PictureText(read, "tesseract")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v, wanted - got +:\n%s", read, err, diff)
		}
	}
	if _, err := document.PictureText(" \n\f", "tesseract"); err == nil || !strings.Contains(err.Error(), "tesseract") {
		t.Errorf("a picture without text: %v", err)
	}
}

// A scan is an error without OCR, and names its pages with it. Each page can be had as a picture.
func TestScansNameTheirPages(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pdf/scanned.pdf")
	if err != nil {
		t.Fatal(err)
	}
	input := document.Input{MediaType: "application/pdf", SizeBytes: int64(len(raw)), Body: bytes.NewReader(raw)}
	if _, err := documenttest.Readers().Read(t.Context(), input); err == nil ||
		!strings.Contains(err.Error(), "LOCI_OCR_COMMAND") {
		t.Errorf("without OCR: %v, want an error that names the setting", err)
	}
	input.Scans = true
	got, err := documenttest.Readers().Read(t.Context(), input)
	if err != nil || !slices.Equal(got.Unread, []int{1, 2, 3}) || len(got.Pages) != 3 {
		t.Errorf("with OCR: %+v, %v, want three pages to read", got, err)
	}
	ready, err := documenttest.Readers().Prepare(input.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = ready.Image(input, 1)
	if err != nil {
		t.Fatal(err)
	}
	if image, err := png.Decode(bytes.NewReader(raw)); err != nil || image.Bounds().Dx() < 1000 {
		t.Errorf("the picture of page 1: %v", err)
	}
}

// What only programs read is refused with the name of the setting, and accepted once a program is set.
func TestProgramsDecideWhatIsAccepted(t *testing.T) {
	t.Parallel()
	all := document.Accepted{Pictures: true, OldFormats: true}
	for _, tt := range []struct{ name, raw, media, setting string }{
		{"a.png", pngImage(), "image/png", "LOCI_OCR_COMMAND"},
		{"a.gif", "GIF89a\x01\x00\x01\x00\x80\xff\x00\x00", "image/gif", "LOCI_OCR_COMMAND"},
		{"a.tif", "II*\x00\x08\x00\x00\x00\xff\xfe\x01\x00", "image/tiff", "LOCI_OCR_COMMAND"},
		{"a.jpg", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", "image/jpeg", "LOCI_OCR_COMMAND"},
		{"a.doc", ole("WordDocument"), "application/msword", "LOCI_CONVERT_COMMAND"},
		{"a.xls", ole("Workbook"), "application/vnd.ms-excel", "LOCI_CONVERT_COMMAND"},
		{"a.ppt", ole("PowerPoint Document"), "application/vnd.ms-powerpoint", "LOCI_CONVERT_COMMAND"},
		{"a.msg", ole("__properties_version1.0"), "application/vnd.ms-outlook", "LOCI_CONVERT_COMMAND"},
		{"a.rtf", `{\rtf1 Hello}`, "text/rtf", "LOCI_CONVERT_COMMAND"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body, size := strings.NewReader(tt.raw), int64(len(tt.raw))
			if media, err := all.Sniff(tt.name, "", body, size); media != tt.media || err != nil {
				t.Errorf("with programs: %q, %v, want %s", media, err, tt.media)
			}
			if _, err := document.Sniff(tt.name, "", body, size); err == nil || !strings.Contains(err.Error(), tt.setting) {
				t.Errorf("without programs: %v, want an error that names %s", err, tt.setting)
			}
			input := document.Input{MediaType: tt.media, SizeBytes: size, Body: body}
			_, err := document.Readers{}.Read(t.Context(), input)
			if err == nil || !strings.Contains(err.Error(), tt.setting) || !input.IsComplex() {
				t.Errorf("parsed again without programs: %v, want an error that names %s", err, tt.setting)
			}
		})
	}
}
