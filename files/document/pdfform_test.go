package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/files/document"
)

// pdfPage is a page of a PDF: its content, its annotations as dictionaries, and further entries of its dictionary.
type pdfPage struct {
	content     string
	annotations []string
	entries     string
}

// pdfOf returns a PDF of pages. Its form has the fields that are among the annotations (those with /T), and further
// entries.
func pdfOf(form string, pages ...pdfPage) []byte {
	objects := []string{"", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		"<</Type/XObject/Subtype/Form/BBox[0 0 12 12]/Length 0>>stream\n\nendstream"} // the catalog comes last
	for _, content := range drawings {
		objects = append(objects, fmt.Sprintf("<</Type/XObject/Subtype/Form/BBox[0 -3 150 12]/Resources<</Font<</F 2 0 R>>>>"+
			"/Length %d>>stream\n%s\nendstream", len(content), content))
	}
	add := func(object string) int {
		objects = append(objects, object)
		return len(objects) // the number of an object is its place, from 1
	}
	var kids, fields []string
	tree := add("")
	for _, page := range pages {
		content := add(fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(page.content), page.content))
		var annotations []string
		for _, a := range page.annotations {
			n := add(a)
			annotations = append(annotations, fmt.Sprintf("%d 0 R", n))
			if strings.Contains(a, "/T(") && strings.Contains(a, "/FT") {
				fields = append(fields, fmt.Sprintf("%d 0 R", n))
			}
		}
		kids = append(kids, fmt.Sprintf("%d 0 R", add(fmt.Sprintf("<</Type/Page/Parent %d 0 R/MediaBox[0 0 600 800]"+
			"/Resources<</Font<</F 2 0 R>>/XObject<</X0 4 0 R/X1 5 0 R/X2 6 0 R/X3 7 0 R>>>>/Contents %d 0 R/Annots[%s]%s>>",
			tree, content,
			strings.Join(annotations, " "), page.entries))))
	}
	objects[tree-1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(kids))
	objects[0] = fmt.Sprintf("<</Type/Catalog/Pages %d 0 R/AcroForm<</DR<</Font<</F 2 0 R>>>>/DA(/F 12 Tf 0 g)"+
		"/Fields[%s]%s>>>>", tree, strings.Join(fields, " "), form)
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return []byte(b.String())
}

// drawings are the contents of drawings of their own: objects 4 and so on, and /X0 and so on of each page.
var drawings = []string{
	shown(2, 0, "Delivery on 14 May"), shown(2, 0, "Ada") + shown(40, 0, "Lovelace"), "0 0 10 10 re S",
	"q 1 0 0 1 50 700 cm /X1 Do Q",
}

// shown returns the operators that show a text at a place.
func shown(x, y int, s string) string {
	return fmt.Sprintf("BT /F 12 Tf %d %d Td (%s) Tj ET\n", x, y, s)
}

// widget returns a field with a place and entries. field is its type and its name, such as "Tx/date".
func widget(field string, x, y, width int, entries string) string {
	kind, name, _ := strings.Cut(field, "/")
	return fmt.Sprintf("<</Type/Annot/Subtype/Widget/FT/%s/T(%s)/Rect[%d %d %d %d]/F 4%s>>", kind, name, x, y-3, x+width,
		y+12, entries)
}

// note returns an annotation.
func note(kind string, x, y, width int, entries string) string {
	return fmt.Sprintf("<</Type/Annot/Subtype/%s/Rect[%d %d %d %d]/F 4%s>>", kind, x, y-3, x+width, y+12, entries)
}

// testPDF checks the text of PDFs.
func testPDF(t *testing.T, cases []pdfCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			got, err := readPDF(reader, c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.omitted, document.ListOmissions(got.Omitted)); diff != "" {
				t.Errorf("omitted (-want +got):\n%s", diff)
			}
		})
	}
}

type pdfCase struct {
	claim         string
	raw           []byte
	want, omitted string
}

// An appearance of a check box: its states Yes and Off draw nothing.
const boxStates = "/AP<</N<</Yes 3 0 R/Off 3 0 R>>>>"

func TestAFilledPDFFormReadsAsFilled(t *testing.T) {
	t.Parallel()
	one := func(content string, annotations ...string) []byte {
		return pdfOf("", pdfPage{content, annotations, ""})
	}
	wanted := shown(50, 700, "Order form. Wanted date:") + shown(50, 680, "Thank you.")
	testPDF(t, []pdfCase{
		{"a value stands where it is on the page", one(wanted, widget("Tx/date", 200, 700, 150,
			"/V(Delivery on 14 May)")), "Order form. Wanted date: Delivery on 14 May\nThank you.\n", ""},
		{"so it does without an appearance, and in UTF-16", pdfOf("/NeedAppearances true", pdfPage{wanted,
			[]string{widget("Tx/date", 200, 700, 150, "/V<FEFF003100340020004D00E10069>")}, ""}),
			"Order form. Wanted date: 14 Mái\nThank you.\n", ""},
		{"an empty field has no value", one(wanted, widget("Tx/date", 200, 700, 150, "")),
			"Order form. Wanted date:\nThank you.\n", ""},
		{"a value without a place is listed by its field", one(wanted,
			"<</Type/Annot/Subtype/Widget/FT/Tx/T(date)/V(Delivery on 14 May)>>"),
			"Order form. Wanted date:\nThank you.\n\ndate: Delivery on 14 May\n", ""},
		{"a page without text of its own lists its fields", one("", widget("Tx/name", 50, 700, 100, "/V(Ada)"),
			widget("Btn/paid", 50, 660, 12, "/V/Yes/AS/Yes"+boxStates)), "name: Ada\npaid: ☒\n", ""},
		{"two fields on a line, in their order", one(shown(50, 700, "First:")+shown(200, 700, "Last:"),
			widget("Tx/b", 240, 700, 100, "/V(Lovelace)"), widget("Tx/a", 90, 700, 90, "/V(Ada)")),
			"First: Ada Last: Lovelace\n", ""},
		{"labels above their fields", one(shown(50, 700, "First name")+shown(200, 700, "Last name")+
			shown(50, 600, "End"), widget("Tx/a", 50, 680, 100, "/V(Ada)"), widget("Tx/b", 200, 680, 100, "/V(Lovelace)")),
			"First name Ada Last name Lovelace\nEnd\n", ""},
		{"a field far from any text has its own line", one(shown(50, 750, "Remarks")+shown(50, 100, "End"),
			widget("Tx/a", 50, 400, 300, "/V(two\\nlines)")), "Remarks\ntwo\nlines\nEnd\n", ""},
		{"a field above all text", one(shown(50, 100, "End"), widget("Tx/a", 50, 700, 300, "/V(first)")),
			"first\nEnd\n", ""},
		{"boxes before their labels", one(shown(50, 700, "Paid:")+shown(120, 700, "yes")+shown(170, 700, "no"),
			widget("Btn/yes", 105, 700, 12, "/V/Yes/AS/Yes"+boxStates), widget("Btn/no", 155, 700, 12,
				"/V/Off/AS/Off"+boxStates)), "Paid: ☒ yes ☐ no\n", ""},
		{"boxes behind their labels", one(shown(50, 700, "yes")+shown(120, 700, "no"),
			widget("Btn/yes", 75, 700, 12, "/V/Off/AS/Off"+boxStates), widget("Btn/no", 140, 700, 12,
				"/V/Yes/AS/Yes"+boxStates)), "yes ☐ no ☒\n", ""},
		{"a box without an appearance is what its field says", one(shown(70, 700, "yes")+shown(70, 680, "no"),
			widget("Btn/yes", 50, 700, 12, "/V/Yes/AS/Yes"), widget("Btn/no", 50, 680, 12, "/V/Off/AS/Off")),
			"☒ yes\n☐ no\n", ""},
		{"a choice by its label", one(shown(50, 700, "Colour:"), widget("Ch/c", 100, 700, 80,
			"/Ff 131072/V(r)/Opt[[(r)(red)][(g)(green)]]")), "Colour: red\n", ""},
		{"a choice that was typed", one(shown(50, 700, "Colour:"), widget("Ch/c", 100, 700, 80,
			"/Ff 393216/V(mauve)/Opt[[(r)(red)][(g)(green)]]")), "Colour: mauve\n", ""},
		{"several choices of a list", one(shown(50, 700, "Days:"), widget("Ch/d", 100, 700, 80,
			"/Ff 2097152/V[(Mo)(We)]/I[0 2]/Opt[(Mo)(Tu)(We)]")), "Days: Mo, We\n", ""},
		{"a value that the page draws too is there once", one(shown(50, 700, "Order form. Wanted date:")+
			shown(200, 700, "Delivery on 14 May")+shown(50, 680, "Thank you."),
			widget("Tx/date", 198, 700, 150, "/V(Delivery on 14 May)")),
			"Order form. Wanted date: Delivery on 14 May\nThank you.\n", ""},
		{"a password is named", one(wanted, widget("Tx/pin", 200, 700, 150, "/Ff 8192/V(hunter2)")),
			"Order form. Wanted date:\nThank you.\n", "1 password (page 1)"},
		{"a hidden field is named", one(wanted, strings.Replace(widget("Tx/id", 200, 700, 150, "/V(secret)"), "/F 4",
			"/F 2", 1)), "Order form. Wanted date:\nThank you.\n", "1 hidden field (page 1)"},
		{"on a page that is turned", pdfOf("", pdfPage{"q 0 1 -1 0 600 0 cm " + shown(50, 300, "Date:") + shown(50, 250,
			"End") + "Q", []string{"<</Type/Annot/Subtype/Widget/FT/Tx/T(d)/V(14 May)/F 4/Rect[288 90 303 190]>>"},
			"/Rotate 90"}), "Date: 14 May\nEnd\n", ""},
		{"on a page that is shown turned", pdfOf("", pdfPage{wanted, []string{widget("Tx/date", 200, 700, 150,
			"/V(14 May)")}, "/Rotate 90"}), "Order form. Wanted date: 14 May\nThank you.\n", ""},
	})
}

// Programs that put pages together leave the list of the form's fields out. The fields still say their values.
func TestFieldsThatNoFormListsAreRead(t *testing.T) {
	t.Parallel()
	raw := pdfOf("", pdfPage{shown(50, 700, "Wanted date:") + shown(50, 680, "Express:") + shown(50, 660, "Pay by:"),
		[]string{widget("Tx/date", 200, 700, 150, "/V(Delivery on 14 May)"),
			widget("Btn/express", 200, 680, 12, "/V/Yes/AS/Yes"+boxStates),
			widget("Btn/gift", 230, 680, 12, "/AS/Off"+boxStates),
			widget("Ch/pay", 200, 660, 100, "/V(Card)/Opt[(Card)(Cash)]"), widget("Btn/send", 300, 660, 50, "/Ff 65536")}, ""})
	lost := strings.Replace(string(raw), "/AcroForm", "/AcroLost", 1)
	testPDF(t, []pdfCase{{"a form without its list", []byte(lost),
		"Wanted date: Delivery on 14 May\nExpress: ☒ ☐\nPay by: Card\n", ""},
		{"a field that the list lacks", []byte(strings.Replace(string(raw), "/Fields[", "/Others[", 1)),
			"Wanted date: Delivery on 14 May\nExpress: ☒ ☐\nPay by: Card\n", ""}})
}

func TestRadioButtonsOfAPDF(t *testing.T) {
	t.Parallel()
	const kid = "/AP<</N<</%s 3 0 R/Off 3 0 R>>>>/AS/%s"
	raw := pdfOf("", pdfPage{shown(70, 700, "small") + shown(170, 700, "large"), []string{
		widget("Btn/a", 50, 700, 12, "/Ff 49152/V/large"+fmt.Sprintf(kid, "small", "Off")),
		widget("Btn/b", 150, 700, 12, "/Ff 49152/V/large"+fmt.Sprintf(kid, "large", "large")),
	}, ""})
	testPDF(t, []pdfCase{{"the chosen one is crossed", raw, "☐ small ☒ large\n", ""}})
}

func TestCommentsOfAPDFAreNotesOfTheirPage(t *testing.T) {
	t.Parallel()
	first := shown(50, 700, "The board takes 4500 bolts.")
	testPDF(t, []pdfCase{
		{"a comment with its author", pdfOf("", pdfPage{first, []string{note("Text", 400, 700, 20,
			"/T(Ana)/Contents(Are you sure?\\rAsk the shop.)")}, ""}, pdfPage{shown(50, 700, "Next."), nil, ""}),
			"The board takes 4500 bolts.\n\nComment by Ana: Are you sure?\nAsk the shop.\n\nNext.\n", ""},
		{"a remark on marked words", pdfOf("", pdfPage{first, []string{note("Highlight", 115, 700, 60,
			"/Contents(too many)/QuadPoints[140 712 195 712 140 697 195 697]")}, ""}),
			"The board takes 4500 bolts.\n\nComment on \"4500 bolts\": too many\n", ""},
		{"words that are only marked need no note", pdfOf("", pdfPage{first, []string{note("Highlight", 115, 700, 60,
			"/QuadPoints[120 712 179 712 120 697 179 697]")}, ""}), "The board takes 4500 bolts.\n", ""},
		{"so are comments and texts with nothing but rich text", pdfOf("", pdfPage{first + shown(50, 680, "Signed:"),
			[]string{note("Text", 400, 700, 20, "/RC(<body><p>Are you <b>sure</b>?</p></body>)"),
				note("FreeText", 100, 680, 60, "/RC(<body><p>Ada</p></body>)")}, ""}),
			"The board takes 4500 bolts.\nSigned: Ada\n\nComment: Are you **sure**?\n", ""},
		{"links and pop-ups need no note", pdfOf("", pdfPage{first, []string{note("Link", 50, 700, 60,
			"/Contents(a link)"), note("Popup", 50, 700, 60, "/Contents(again)")}, ""}), "The board takes 4500 bolts.\n", ""},
		{"a text typed on the page stands in its place", pdfOf("", pdfPage{first + shown(50, 680, "Signed:"),
			[]string{note("FreeText", 100, 680, 60, "/Contents(Ada)")}, ""}), "The board takes 4500 bolts.\nSigned: Ada\n", ""},
		{"what has no words is named", pdfOf("", pdfPage{first, []string{note("Stamp", 50, 500, 60, ""), note("Ink", 50,
			400, 60, ""), note("FileAttachment", 50, 300, 60, "/Contents(the plan)")}, ""}),
			"The board takes 4500 bolts.\n\nComment: the plan\n",
			"1 stamp (page 1), 1 drawing by hand (page 1), 1 attachment (page 1)"},
	})
}
