package document_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

// pictured are documents with two pictures that OCR reads, and what else they have.
func pictured(t *testing.T) map[string]omitCase {
	t.Helper()
	blip := `<pic:pic><pic:blipFill><a:blip r:embed="%s"/></pic:blipFill></pic:pic>`
	inWord := func(id string) string {
		return "<w:r><w:drawing>" + fmt.Sprintf(blip, id) + "</w:drawing></w:r>"
	}
	onSlide := func(id string) string {
		return `<p:pic><p:blipFill><a:blip r:embed="` + id + `"/></p:blipFill></p:pic>`
	}
	inSheet := func(id string) string {
		return `<xdr:twoCellAnchor><xdr:pic><xdr:blipFill><a:blip r:embed="` + id +
			`"/></xdr:blipFill></xdr:pic></xdr:twoCellAnchor>`
	}
	frame := func(name string) string {
		return `<draw:frame><draw:image xlink:href="Pictures/` + name + `"/></draw:frame>`
	}
	parts := func(dir string) []string {
		return []string{dir + "1.png", pngImage(), dir + "2.PNG", pngImage(), dir + "3.emf", "drawing"}
	}
	links := func(dir string) string {
		return relations("a", "image", dir+"1.png", "b", "image", dir+"2.PNG", "c", "image", dir+"3.emf")
	}
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(pngImage()))
	large := "q 300 0 0 100 50 %d cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x01 EI Q\n"
	return map[string]omitCase{
		"Word": {mediaType: wordType, raw: docx(para(run("One"))+para(inWord("a"))+para(run("Two "), inWord("b"), run("!"))+
			para(inWord("c"))+para(run("End")), append(parts("word/media/"), "word/_rels/document.xml.rels",
			links("media/"))...), want: "One\n\nB0\n\nTwo I1!\n\nEnd\n"},
		"PowerPoint": {mediaType: powerPoint, raw: pptx([]string{shape("", line("", "One")) + onSlide("a"), onSlide("b") +
			onSlide("c") + shape("", line("", "Two"))}, append(parts("ppt/media/"),
			"ppt/slides/_rels/slide1.xml.rels", links("../media/"),
			"ppt/slides/_rels/slide2.xml.rels", links("../media/"))...),
			want: "## Slide 1\n\nOne\n\nB0\n\n## Slide 2\n\nB1\n\nTwo\n"},
		"Excel": {mediaType: excel, raw: rezipped(t, drawn(cells("a"), inSheet("a")+inSheet("b")+inSheet("c"),
			parts("xl/media/")...), "xl/drawings/_rels/drawing1.xml.rels", []byte(links("../media/"))),
			want: "## S\n\na\n\nB0\n\nB1\n"},
		"OpenDocument": {mediaType: openText, raw: odf("text", textP("One"+frame("1.png"))+textP(frame("2.PNG"))+
			textP(frame("3.emf")), parts("Pictures/")...), want: "One I0\n\nB1\n"},
		"EPUB": {mediaType: "application/epub+zip", raw: archive(append(parts("OEBPS/i/"), "META-INF/container.xml",
			`<container><rootfiles><rootfile full-path="OEBPS/p.opf"/></rootfiles></container>`, "OEBPS/p.opf",
			`<package><manifest><item id="a" href="t/a.html" media-type="application/xhtml+xml"/></manifest><spine>`+
				`<itemref idref="a"/></spine></package>`, "OEBPS/t/a.html", `<p>One</p><p><img src="../i/1.png"></p><p>Two `+
				`<img src="../i/2.PNG"/></p><img src="../i/3.emf"/>`)...),
			want: "One\n\n![](../i/1.png) I0\n\nTwo ![](../i/2.PNG) I1\n\n![](../i/3.emf)\n"},
		"HTML": {mediaType: "text/html", raw: []byte("<p>One <img src='" + data + "'> two</p><p><img src='" + data +
			"'></p><img src='c.png'>"), want: "One I0 two\n\nB1\n\n![](c.png)\n"},
		"PDF": {mediaType: "application/pdf", raw: pdfOf("", pdfPage{shown(50, 700, "One") + fmt.Sprintf(large, 500) +
			fmt.Sprintf(large, 300) + "q 9 0 0 9 50 100 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x01 EI Q\n", nil, ""}),
			want: "One\n\nB0\n\nB1\n"},
	}
}

// Pictures in documents are listed with their places, can be had by themselves, and the text that OCR reads in them
// takes their places. Others stay named.
func TestPicturesInDocumentsAreReadByOCR(t *testing.T) {
	t.Parallel()
	for name, c := range pictured(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := func(scans bool) document.Input {
				return document.Input{MediaType: c.mediaType, SizeBytes: int64(len(c.raw)),
					Body: bytes.NewReader(c.raw), Scans: scans}
			}
			if !input(true).MayHavePictures() {
				t.Error("it is not known to have pictures")
			}
			plain, err := documenttest.Readers().Read(t.Context(), input(false))
			if err != nil || len(plain.Omitted) != 1 || plain.Omitted[0].Count != 3 ||
				!strings.Contains(plain.Omitted[0].Remedy, "LOCI_OCR_COMMAND") || strings.Contains(plain.Text, "\ufdd0") {
				t.Fatalf("without OCR: %+v, %v", plain, err)
			}
			text, err := documenttest.Readers().Read(t.Context(), input(true))
			if err != nil || len(text.Pictures) != 2 {
				t.Fatalf("got %+v, %v, want two pictures", text, err)
			}
			for _, p := range text.Pictures {
				ready, err := documenttest.Readers().Prepare(c.mediaType)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := ready.Picture(input(true), p.Part)
				if err != nil || document.PictureType(raw) != "png" || p.Check() != nil {
					t.Errorf("%+v: got %.20q, %v, %v", p, raw, err, p.Check())
				}
			}
			got, err := text.WithPictures(map[int]string{0: "Harbour\nrules\f", 1: "Boats"}, "tesseract", "no text")
			want := c.want
			for i, read := range []string{"Harbour\nrules", "Boats"} {
				inline := "[Picture, read by OCR: " + strings.ReplaceAll(read, "\n", " ") + "]"
				block := "[Picture, read by OCR]\n" + read + "\n[End of the picture]"
				want = strings.NewReplacer(fmt.Sprint("I", i), inline, fmt.Sprint("B", i), block).Replace(want)
			}
			if diff := cmp.Diff(want, got.Text); diff != "" || err != nil {
				t.Errorf("%v, wanted - got +:\n%s", err, diff)
			}
			if len(got.Omitted) != 1 || got.Omitted[0].Count != 1 || len(got.ReadBy) != 1 || len(got.Pictures) != 0 {
				t.Errorf("omitted %+v, read by %+v", got.Omitted, got.ReadBy)
			}
			none, err := text.WithPictures(nil, "tesseract", "no text")
			letters := strings.NewReplacer(" ", "", "\n", "")
			if err != nil || none.Omitted[0].Count != 3 || none.ReadBy != nil ||
				letters.Replace(none.Text) != letters.Replace(plain.Text) {
				t.Errorf("nothing was read: got %q, %+v, %v, want %q", none.Text, none.Omitted, err, plain.Text)
			}
		})
	}
}

// Texts of pictures fit into what is around them.
func TestTextsOfPicturesFitTheirPlaces(t *testing.T) {
	t.Parallel()
	mark := "\ufdd00\ufdd1"
	text := document.Text{Text: "a\n\n- " + mark + "\n\n| x | " + mark + " |\n\n" + mark + "\n\nb\n",
		Pages:    []int{1, 5, 9},
		Pictures: []document.Picture{{Part: "p", Word: "page", N: 1}}, Omitted: []document.Omission{{
			Kind: "picture without text", Count: 1, Where: "page 1"}}}
	for read, want := range map[string]document.Text{
		"1 | 2\n3": {Text: "a\n\n- [Picture, read by OCR: 1 | 2 3]\n\n| x | [Picture, read by OCR: 1 \\| 2 3] |\n\n" +
			"[Picture, read by OCR]\n1 | 2\n3\n[End of the picture]\n\nb\n", Pages: []int{1, 5, 12},
			Omitted: []document.Omission{}, ReadBy: []document.ReadBy{{Kind: "OCR", Program: "t", Where: "pictures: page 1"}}},
		" \f": {Text: "a\n\n| x | |\n\nb\n", Pages: []int{1, 3, 5}, Omitted: []document.Omission{{
			Kind: "picture without text", Count: 1, Where: "page 1", Remedy: "why"}}},
	} {
		got, err := text.WithPictures(map[int]string{0: read}, "t", "why")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v, wanted - got +:\n%s", read, err, diff)
		}
	}
	only := document.Text{Text: mark + "\n", Pictures: text.Pictures, Omitted: text.Omitted}
	got, err := only.WithPictures(nil, "t", "why")
	if err == nil || !strings.Contains(err.Error(), "picture without text") {
		t.Errorf("nothing but a picture without text: %+v, %v", got, err)
	}
}

// A picture that is not there, or is none, has an error.
func TestPicturesThatAreNot(t *testing.T) {
	t.Parallel()
	for name, c := range pictured(t) {
		for _, part := range []string{"x", "99", "word/document.xml", "content.xml", "1 -9 -9 -5 -5", "7 0 0 9 9", "../etc"} {
			ready, err := documenttest.Readers().Prepare(c.mediaType)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := ready.Picture(document.Input{MediaType: c.mediaType, SizeBytes: int64(len(c.raw)),
				Body: bytes.NewReader(c.raw)}, part)
			if err == nil {
				t.Errorf("%s, %s: got %d bytes", name, part, len(raw))
			}
		}
	}
}

// A picture with text on it, such as a scan that was read by OCR before, and a small one are not read again.
func TestPicturesOfAPDFThatAreNotRead(t *testing.T) {
	t.Parallel()
	const picture = "q %d 0 0 %d 50 500 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x01 EI Q\n"
	for name, content := range map[string]string{
		"with text on it": fmt.Sprintf(picture, 400, 200) + shown(60, 600, "A line of text that was scanned"),
		"small":           fmt.Sprintf(picture, 60, 60) + shown(60, 700, "Text"),
	} {
		raw := pdfOf("", pdfPage{content, nil, ""})
		text, err := documenttest.Readers().Read(t.Context(), document.Input{MediaType: "application/pdf",
			SizeBytes: int64(len(raw)), Body: bytes.NewReader(raw), Scans: true})
		if err != nil || len(text.Pictures) > 0 || document.ListOmissions(text.Omitted) != "1 picture without text (page 1)" {
			t.Errorf("%s: %+v, %v", name, text, err)
		}
	}
}
