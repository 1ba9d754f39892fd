package document_test

import (
	"bytes"
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
		{"a language that is named", formatted("", "[$-de-DE]d. mmmm yyyy", "46082", "[$-da-DK]d. mmmm", "46147",
			"[$-en-GB]mmmm", "46082"), head + "1. März 2026 | 5. maj | March" + tail, []int{1}},
		{"a language with digits or a calendar", formatted("", "[$-107041E]d mmm yyyy;@", "46082", "[$-2010000]d/m/yyyy",
			"46082", "[$-ja-JP,80]yyyy/m/d", "46082"), head + "1 มี.ค. 2569 | 1/3/2026 | 2026/3/1" + tail, []int{1}},
		{"names in the genitive", formatted("", `[$-FC19]dd mmmm yyyy" г."`, "46082", "[$-FC22]d mmmm yyyy", "46082",
			"[$-FC05]d. mmmm", "46082"), head + "01 марта 2026 г. | 1 березня 2026 | 1. březen" + tail, []int{1}},
		{"languages that nobody knows", formatted("", "[$-7F]d mmm yyyy", "46082", "[$-xx-YY]d mmmm", "46082", "[$-0]yyyy",
			"46082"), head + "1 Mar 2026 | 1 March | 2026" + tail, []int{1}},
		{"names that the library has wrong", formatted("", "[$-40B]mmmm", "46054", "[$-fi-FI]ddd d. mmmm", "46030",
			"[$-41E]dddd d mmmm yy", "46082"), head + "helmikuu | to 8. tammikuu | อาทิตย์ 1 มีนาคม 26" + tail, []int{1}},
		{"but a currency is none", formatted("", "#,##0.00 [$€-de-DE]", "46082", "[$-409]0", "5", "[$-41E]0.0", "5"), head +
			"46,082.00 € | 5 | 5.0" + tail, []int{1}},
		{"a number that its format hides", formatted("", ";;;", "46082", "0", "1", "0", "2"), "## S\n\n| | 1 | 2" + tail,
			[]int{1}},
	})
	testOmits(t, []omitCase{{"a hidden number is named", excel, formatted("", ";;;", "46082", "0", "1", "0", "2"),
		"1 hidden text (sheet S)"}})
}

// Programs that do not calculate store zeros as the values of formulas, and have the workbook calculated when it is
// opened.
func TestXLSXFormulasThatNobodyCalculated(t *testing.T) {
	t.Parallel()
	row := `<row r="1"><c r="A1"><f>SUM(A2:B2)</f><v>0</v></c><c r="B1"><f>B2+1</f><v>8</v></c><c r="C1"><v>0</v></c>` +
		`</row>` +
		`<row r="2"><c r="A2" t="str"><f>HYPERLINK("https://example.org/f","our ""terms""")</f><v>0</v></c>` +
		`<c r="B2"><f>HYPERLINK("https://example.org/g")</f><v>0</v></c></row>`
	const rest = " | 8 | 0 |\n| --- | --- | --- |\n| "
	testReads(t, document.XLSX, []readCase{
		{"are shown as formulas", xlsxWith(`<calcPr fullCalcOnLoad="1"/>`, []sheet{{"S", "", row}}), "## S\n\n| =SUM(A2:B2)" +
			rest + "[our \"terms\"](https://example.org/f) | https://example.org/g |\n", []int{1}},
		{"elsewhere a zero is a zero", xlsxWith(`<calcPr calcId="1"/>`, []sheet{{"S", "", row}}), "## S\n\n| 0" + rest +
			"[0](https://example.org/f) | [0](https://example.org/g) |\n", []int{1}},
	})
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

// Each language that a format may name is one that the library knows.
func TestXLSXLanguagesOfDates(t *testing.T) {
	t.Parallel()
	names := strings.Fields("af am ar ar-SA as az ba be bg bn bo br bs ca co cs cy da de de-AT de-CH dv el en es es- " +
		"MX et eu fa ff fi fil fo fr fr-CA fy ga gd gl gn gsw gu ha haw he hi hr hsb hu hy id ig " +
		"is it iu ja ka kk kl km kn ko kok ku ky lb lo lt lv mi mk ml mn mr ms mt my nb ne nl nn " +
		"no nso oc om or pa pl ps pt pt-PT rm ro ru rw sa sd se si sk sl so sq sr sr-Latn-RS st " +
		"sv sw ta te tg th ti tk tn tr ts tt uk ur uz ve vi wo xh yo zh zh-TW zh-HK zu")
	var formats []string
	for _, name := range names {
		formats = append(formats, "[$-"+name+"]yyyy mmmm", "46082")
	}
	raw := formatted("", formats...)
	got, err := document.XLSX(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range strings.Split(strings.Split(got.Text, "\n")[2], " | ") {
		if !strings.Contains(cell, "2026") {
			t.Errorf("in %s the date shows as %s", names[i], cell)
		}
	}
}
