package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// formatted returns a workbook with one row of numbers, each in a format of its own, above a row of letters.
func formatted(properties string, formatsAndValues ...string) []byte {
	var formats, styles, row strings.Builder
	styles.WriteString(`<xf numFmtId="0"/>`)
	for i := 0; i < len(formatsAndValues); i += 2 {
		code := strings.ReplaceAll(formatsAndValues[i], `"`, "&quot;")
		fmt.Fprintf(&formats, `<numFmt numFmtId="%d" formatCode="%s"/>`, 164+i/2, code)
		fmt.Fprintf(&styles, `<xf numFmtId="%d" applyNumberFormat="1"/>`, 164+i/2)
		fmt.Fprintf(&row, `<c s="%d"><v>%s</v></c>`, 1+i/2, formatsAndValues[i+1])
	}
	return xlsxWith(properties, []sheet{{"S", "", "<row>" + row.String() + "</row>" + cells("x", "y", "z")}},
		"xl/styles.xml", `<styleSheet xmlns="`+schemas+`spreadsheetml/2006/main"><numFmts>`+formats.String()+
			`</numFmts><cellXfs>`+styles.String()+`</cellXfs></styleSheet>`)
}

func TestXLSXNumbersAsExcelShowsThem(t *testing.T) {
	t.Parallel()
	const head, tail = "## S\n\n| ", " |\n| --- | --- | --- |\n| x | y | z |\n"
	from1904 := `<workbookPr date1904="1"/>`
	testReads(t, document.XLSX, []readCase{
		{"durations beyond a day", formatted("", "[h]:mm:ss", "1.2604", "[m]", "1.5", "[ss]", "0.001"),
			head + "30:14:59 | 2160 | 86" + tail, []int{1}},
		{"durations of a workbook that counts from 1904", formatted(from1904, "[h]:mm:ss", "1.2604166666666667",
			"yyyy-mm-dd", "44650", "[h]:mm", "-0.5"), head + "30:15:00 | 2026-03-31 | -12:00" + tail, []int{1}},
		{"parts of a second", formatted("", "hh:mm:ss.000", "46082.123456", "mm:ss.0", "0.5000057", "s.00",
			"0.0000115740740740741"), head + "02:57:46.598 | 00:00.5 | 1.00" + tail, []int{1}},
		{"with a date and half days", formatted("", `d.m.yyyy h:mm:ss.0 AM/PM`, "46082.75", `[h]" h "m" min"`, "2.3", "0",
			"1"),
			head + "1.3.2026 6:00:00.0 PM | 55 h 12 min | 1" + tail, []int{1}},
		{"fractions", formatted("", "# ?/?", "0.5", "# ??/??", "5.25", "# ?/8", "-1.124"), head + "1/2 | 5 1/4 | -1 1/8" +
			tail, []int{1}},
		{"fractions that are none", formatted("", "# ?/?", "3", "# ?/?", "0", "# ?/?", "0.999"), head + "3 | 0 | 1" + tail,
			[]int{1}},
		{"years of the Buddhist calendar", formatted("", "dd/mm/bbbb", "46082", "0", "1", "0", "2"), head +
			"01/03/2569 | 1 | 2" + tail, []int{1}},
		{"a number that its format hides", formatted("", ";;;", "46082", "0", "1", "0", "2"), "## S\n\n| | 1 | 2" + tail,
			[]int{1}},
	})
	testOmits(t, []omitCase{{"a hidden number is named", excel, formatted("", ";;;", "46082", "0", "1", "0", "2"),
		"1 hidden text (sheet S)"}})
}

func TestXLSXLinks(t *testing.T) {
	t.Parallel()
	row := `<row r="1"><c r="A1" t="str"><v>prices</v></c><c r="B1" t="str"><v>https://example.org/b</v></c></row>` +
		`<row r="2"><c r="A2" t="str"><f>HYPERLINK("https://example.org/f","terms")</f><v>terms</v></c>` +
		`<c r="B2"><v>7</v></c></row></sheetData><hyperlinks><hyperlink ref="A1" r:id="h1" location="top"/>` +
		`<hyperlink ref="B1:B2" r:id="h2"/><hyperlink ref="A2" location="S!A1"/></hyperlinks><sheetData>`
	testReads(t, document.XLSX, []readCase{{"targets stand behind their labels", xlsx([]sheet{{"S", "", row}},
		"xl/worksheets/_rels/sheet1.xml.rels", relations("h1", "hyperlink", "https://example.org/a", "h2", "hyperlink",
			"https://example.org/b")), "## S\n\n| [prices](https://example.org/a#top) | https://example.org/b |\n" +
		"| --- | --- |\n| [terms](https://example.org/f) | [7](https://example.org/b) |\n", []int{1}}})
}
