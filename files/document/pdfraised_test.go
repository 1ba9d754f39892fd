package document_test

import (
	"fmt"
	"testing"
)

// sized returns the operators that show a text of a size at a place.
func sized(size, x, y int, s string) string {
	return fmt.Sprintf("BT /F %d Tf %d %d Td (%s) Tj ET\n", size, x, y, s)
}

func TestSignsAboveAndBelowALineStayOnIt(t *testing.T) {
	t.Parallel()
	page := func(content string) []byte { return pdfOf("", pdfPage{content, nil, ""}) }
	next := sized(12, 50, 686, "Next line.")
	water := sized(12, 50, 700, "H") + sized(7, 59, 697, "2") + sized(12, 63, 700, "O and more.")
	squared := "BT /F 12 Tf 50 700 Td (10 km) Tj /F 7 Tf 5 Ts (2) Tj /F 12 Tf 0 Ts (, or CO) Tj /F 7 Tf -3 Ts (2) Tj " +
		"/F 12 Tf 0 Ts ( there) Tj ET\n"
	testPDF(t, []pdfCase{
		{"below", page(water + next), "H2O and more.\nNext line.\n", ""},
		{"above, by a rise of the text", page(squared + next), "10 km2, or CO2 there\nNext line.\n", ""},
		{"on a page that is turned", pdfOf("", pdfPage{"q 0 1 -1 0 600 0 cm " + squared + next + "Q", nil, ""}),
			"10 km2, or CO2 there\nNext line.\n", ""},
		{"a note's number before a word", page(sized(12, 50, 700, "Sea") + sized(7, 72, 704, "4") +
			sized(12, 80, 700, "level") + next), "Sea4 level\nNext line.\n", ""},
		{"a raised number is marked behind another one", page(sized(12, 50, 700, "Of 10") + sized(7, 79, 705, "-6") +
			sized(12, 89, 700, "grams, x") + sized(7, 133, 705, "2") + sized(12, 50, 686, "Of 10") + sized(7, 79, 691, "12")),
			"Of 10^-6 grams, x2\nOf 10^12\n", ""},
		{"a raised number at the beginning of a line", page(sized(12, 50, 700, "2") + sized(7, 57, 704, "10") +
			sized(12, 65, 700, "=1024") + next), "2^10=1024\nNext line.\n", ""},
		{"a sign above another one below", page(sized(12, 50, 700, "x") + sized(7, 56, 697, "i") + sized(7, 58, 702, "2") +
			sized(12, 62, 700, ", y") + next), "xi2, y\nNext line.\n", ""},
		{"with a field behind them", pdfOf("", pdfPage{water + next, []string{widget("Tx/a", 150, 700, 150, "/V(yes)")},
			""}), "H2O and more. yes\nNext line.\n", ""},
		{"but a line that begins below another one's end is a line", page(sized(12, 50, 700, "One step") +
			sized(12, 100, 687, "and one more.")), "One step\nand one more.\n", ""},
		{"and so are close lines", page(sized(12, 50, 700, "Close") + sized(12, 50, 690, "lines")), "Close\nlines\n", ""},
	})
}
