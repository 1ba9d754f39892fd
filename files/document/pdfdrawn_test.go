package document_test

import (
	"fmt"
	"testing"
)

// draws returns the operators that show one of drawings at a place.
func draws(i, x, y int) string { return fmt.Sprintf("q 1 0 0 1 %d %d cm /X%d Do Q\n", x, y, i) }

// Programs that flatten a form draw its values behind everything else.
func TestValuesOfAFlattenedFormStandInTheirPlaces(t *testing.T) {
	t.Parallel()
	labels := shown(50, 700, "Wanted date:") + shown(50, 680, "Name:") + shown(50, 660, "Thank you.")
	page := func(content string) []byte { return pdfOf("", pdfPage{content, nil, ""}) }
	testPDF(t, []pdfCase{
		{"behind their labels", page(labels + draws(0, 200, 700) + draws(1, 200, 680)),
			"Wanted date: Delivery on 14 May\nName: Ada Lovelace\nThank you.\n", ""},
		{"whatever their order", page(labels + draws(1, 200, 680) + draws(0, 200, 700)),
			"Wanted date: Delivery on 14 May\nName: Ada Lovelace\nThank you.\n", ""},
		{"on lines of their own", page(shown(50, 700, "Remarks") + shown(50, 100, "End") + draws(0, 50, 400)),
			"Remarks\nDelivery on 14 May\nEnd\n", ""},
		{"two that are all that a page has", page(draws(1, 50, 600) + draws(0, 50, 700)),
			"Delivery on 14 May\nAda Lovelace\n", ""},
		{"a check box that is only lines is named", page(labels + draws(0, 200, 700) + draws(2, 200, 680)),
			"Wanted date: Delivery on 14 May\nName:\nThank you.\n", "1 check box without text (page 1)"},
		{"a drawing before other text stays where it is", page(shown(50, 700, "Figure:") + draws(0, 300, 600) +
			shown(50, 580, "Its caption.")), "Figure:\nDelivery on 14 May\nIts caption.\n", ""},
	})
}

func TestLinesOfATurnedPageAreInOrder(t *testing.T) {
	t.Parallel()
	lines := shown(50, 700, "Row one") + shown(50, 680, "Row two") + shown(50, 660, "Row three")
	const want = "Row one\nRow two\nRow three\n"
	for _, angle := range []string{"0", "90", "180", "270"} {
		testPDF(t, []pdfCase{{"shown at " + angle + " degrees", pdfOf("", pdfPage{lines, nil, "/Rotate " + angle}), want,
			""}})
	}
	for _, turn := range []string{"0 1 -1 0 600 0", "0 -1 1 0 0 800", "-1 0 0 -1 600 800"} {
		testPDF(t, []pdfCase{{"drawn turned by " + turn, pdfOf("", pdfPage{"q " + turn + " cm " + lines + "Q", nil, ""}),
			want, ""}})
	}
}

func TestAnnotationsThatAreOnlyDrawnAreRead(t *testing.T) {
	t.Parallel()
	const drawn = "/AP<</N 4 0 R>>"
	signed := shown(50, 700, "Signed:") + shown(50, 680, "End")
	one := func(annotations ...string) []byte { return pdfOf("", pdfPage{signed, annotations, ""}) }
	testPDF(t, []pdfCase{
		{"a text typed on the page", one(note("FreeText", 150, 700, 150, drawn)),
			"Signed: Delivery on 14 May\nEnd\n", ""},
		{"a stamp", one(note("Stamp", 150, 700, 150, drawn)), "Signed: Delivery on 14 May\nEnd\n", ""},
		{"a stamp without text is named", one(note("Stamp", 150, 700, 150, "/AP<</N 6 0 R>>")), "Signed:\nEnd\n",
			"1 stamp (page 1)"},
		{"a field without a value", one(widget("Tx/a", 150, 700, 150, drawn)), "Signed: Delivery on 14 May\nEnd\n", ""},
		{"next to a field with one", one(widget("Tx/a", 150, 700, 150, drawn), widget("Tx/b", 350, 700, 100,
			"/V(Ada)")), "Signed: Delivery on 14 May Ada\nEnd\n", ""},
		{"not the caption of a button", one(widget("Btn/a", 150, 700, 150, "/Ff 65536"+drawn)), "Signed:\nEnd\n", ""},
		{"not what is hidden", one("<</Type/Annot/Subtype/FreeText/Rect[150 697 300 712]/F 2" + drawn + ">>"),
			"Signed:\nEnd\n", ""},
	})
}

func TestTargetsOfLinksOfAPDF(t *testing.T) {
	t.Parallel()
	link := func(x, y, width int, target string) string {
		return note("Link", x, y, width, "/A<</S/URI/URI("+target+")>>")
	}
	text := shown(50, 700, "See our prices and terms.") + shown(50, 680, "https://example.org/a/b")
	testPDF(t, []pdfCase{
		{"stand behind their labels", pdfOf("", pdfPage{text, []string{link(96, 700, 33, "https://example.org/2026")}, ""}),
			"See our prices (https://example.org/2026) and terms.\nhttps://example.org/a/b\n", ""},
		{"at the end of a word", pdfOf("", pdfPage{text, []string{link(96, 700, 20, "https://example.org/2026")}, ""}),
			"See our prices (https://example.org/2026) and terms.\nhttps://example.org/a/b\n", ""},
		{"unless the label is the target", pdfOf("", pdfPage{text, []string{link(48, 680, 200,
			"https://example.org/a/b/")}, ""}), "See our prices and terms.\nhttps://example.org/a/b\n", ""},
		{"once for a link on two lines", pdfOf("", pdfPage{text, []string{link(96, 700, 100, "https://example.org/2026"),
			link(48, 680, 200, "https://example.org/2026")}, ""}),
			"See our prices and terms.\nhttps://example.org/a/b (https://example.org/2026)\n", ""},
		{"links within the document have none", pdfOf("", pdfPage{text, []string{note("Link", 96, 700, 40,
			"/Dest[1 0 R/Fit]")}, ""}), "See our prices and terms.\nhttps://example.org/a/b\n", ""},
		{"a link of no text is listed", pdfOf("", pdfPage{text, []string{link(300, 300, 50, "https://example.org/2026")},
			""}), "See our prices and terms.\nhttps://example.org/a/b\n\n(https://example.org/2026)\n", ""},
	})
}
