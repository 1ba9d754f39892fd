package document_test

import (
	"os"
	"testing"
)

// Words that run to the left are in order within other text, and so are numbers, brackets and ligatures among them.
func TestLinesOfTwoDirections(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pdf/directions.pdf")
	if err != nil {
		t.Fatal(err)
	}
	testPDF(t, []pdfCase{{"printed by Chromium", raw, `The word שלום עולם means hello world.
Call 03-1234567 or כתובת: רחוב הרצל 12 today.
The word مرحبا بالعالم means hello.
The text الأهلي والسلام عليكم لا إله is long.
זהו משפט בעברית עם English words בתוכו (סוף), בשנת 2024.
שלום
Price (מחיר): 12.50 and (סוף) end.
A long paragraph of English words with
מילים בעברית שנמשכות על פני שתי שורות ועוד
מילים within it, justified.
Bold אבג italic דהו end

Title: Two directions
`, ""}})
}

func TestMarksOfOtherScriptsStayBesideHebrew(t *testing.T) {
	t.Parallel()
	testPDF(t, []pdfCase{{"exported by LibreOffice", fixture(t, "marks.pdf"), "\nשלום — ประชุม — बैठक\n", ""}})
}
