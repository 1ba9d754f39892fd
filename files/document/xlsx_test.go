package document_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

const xlsxStyles = `<styleSheet xmlns="` + schemas + `spreadsheetml/2006/main"><numFmts count="5">` +
	`<numFmt numFmtId="164" formatCode="dd.mm.yyyy"/>` +
	`<numFmt numFmtId="165" formatCode="#,##0.00 &quot;EUR&quot;"/>` +
	`<numFmt numFmtId="166" formatCode="General&quot; pcs&quot;"/>` +
	`<numFmt numFmtId="167" formatCode="&quot;about &quot;General;General&quot; down&quot;"/>` +
	`<numFmt numFmtId="58" formatCode="0.0&quot; m&quot;"/></numFmts><fonts count="1"><font/></fonts>` +
	`<fills count="1"><fill/></fills>` +
	`<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="15">` +
	`<xf numFmtId="0"/>` +
	`<xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="164" applyNumberFormat="1"/>` +
	`<xf numFmtId="9" applyNumberFormat="1"/>` +
	`<xf numFmtId="165" applyNumberFormat="1"/><xf numFmtId="20" applyNumberFormat="1"/>` +
	`<xf numFmtId="22" applyNumberFormat="1"/><xf numFmtId="31" applyNumberFormat="1"/>` +
	`<xf numFmtId="57" applyNumberFormat="1"/><xf numFmtId="36" applyNumberFormat="1"/>` +
	`<xf numFmtId="33" applyNumberFormat="1"/><xf numFmtId="58" applyNumberFormat="1"/>` +
	`<xf numFmtId="166" applyNumberFormat="1"/><xf numFmtId="167" applyNumberFormat="1"/>` +
	`<xf numFmtId="0" fontId="0" applyFont="1"/></cellXfs></styleSheet>`

// number returns a cell with a number in one of the formats of xlsxStyles.
func number(format, value string) string { return `<c s="` + format + `"><v>` + value + `</v></c>` }

func TestXLSXCells(t *testing.T) {
	t.Parallel()
	one := func(row string, parts ...string) []byte {
		return xlsx([]sheet{{"S", "", row + cells("x", "y")}}, append([]string{"xl/styles.xml", xlsxStyles}, parts...)...)
	}
	row := func(s string) string { return "<row>" + s + "</row>" }
	shared := []string{"xl/sharedStrings.xml", `<sst xmlns="` + schemas +
		`spreadsheetml/2006/main"><si><t>plain</t></si><si><r><t>ri</t></r><r><rPr><b/></rPr>` +
		`<t>ch</t></r></si></sst>`}
	const head, tail = "## S\n\n| ", " |\n| --- | --- |\n| x | y |\n"
	testReads(t, document.XLSX, []readCase{
		{"shared strings, plain and rich", one(row(`<c t="s"><v>0</v></c><c t="s"><v>1</v></c>`), shared...), head +
			"plain | rich" + tail, []int{1}},
		{"truth and errors", one(row(`<c t="b"><v>1</v></c><c t="e"><v>#DIV/0!</v></c>`)), head + "TRUE | #DIV/0!" + tail,
			[]int{1}},
		{"a formula by its last value", one(row(`<c><f>1+1</f><v>2</v></c><c t="str"><f>A1&amp;"z"</f><v>2z</v></c>`)), head +
			"2 | 2z" + tail, []int{1}},
		{"dates of the default format", one(row(number("1", "46112") + number("6", "46112.75"))), head +
			"2026-03-31 | 2026-03-31 18:00" + tail, []int{1}},
		{"dates of another format", one(row(number("2", "46112") + number("5", "0.5"))), head + "31.03.2026 | 12:00" + tail,
			[]int{1}},
		{"the last date of Excel", one(row(number("1", "2958465") + number("1", "1"))), head + "9999-12-31 | 1900-01-01" +
			tail, []int{1}},
		{"a date before Excel's first is a number", one(row(number("1", "-5") + number("1", "60"))), head +
			"-5 | 1900-02-29" + tail, []int{1}},
		{"percents and currencies", one(row(number("3", "0.25") + number("4", "1234.5"))), head + "25% | 1,234.50 EUR" + tail,
			[]int{1}},
		{"a long number keeps its digits", one(row(number("0", "123456789012") + number("0", "0.1"))), head +
			"123456789012 | 0.1" + tail, []int{1}},
		{"a long number keeps its digits in a cell with a style",
			one(row(number("14", "4006381333931") + number("14", "0.1"))), head + "4006381333931 | 0.1" + tail, []int{1}},
		{"dates of East Asia by their number", one(row(number("7", "46082") + number("8", "46082"))), head +
			"2026-03-01 | 2026-03-01" + tail, []int{1}},
		{"dates of East Asia that may have a time", one(row(number("9", "46082") + number("10", "46082.75"))), head +
			"2026-03-01 | 2026-03-01 18:00" + tail, []int{1}},
		{"a number that the workbook gives another meaning", one(row(number("11", "46082") + number("0", "1"))), head +
			"46082.0 m | 1" + tail, []int{1}},
		{"words next to General", one(row(number("12", "5.5") + number("13", "-3"))), head + "5.5 pcs | 3 down" + tail,
			[]int{1}},
		{"words before General", one(row(number("13", "7") + number("0", "1"))), head + "about 7 | 1" + tail, []int{1}},
		{"a formula without a value", one(row(`<c r="A1"><f>SUM(A2:A3)</f></c><c r="B1"><f>B2&amp;"z"</f><v></v></c>`)),
			head + `=SUM(A2:A3) | =B2&"z"` + tail, []int{1}},
		{"a shared formula without a value", one(row(`<c r="A1"><f t="shared" ref="A1:B1" si="0">A3+1</f><v/></c>` +
			`<c r="B1"><f t="shared" si="0"/></c>`)), head + "=A3+1 | =B3+1" + tail, []int{1}},
		{"pipes and lines in a cell", one(cells("a|b", "c\nd")), head + `a\|b | c<br>d` + tail, []int{1}},
		{"cells by their references", one(row(`<c r="B1" t="str"><v>b</v></c>`)), "## S\n\nb\n\n| x | y |\n| --- | --- |\n",
			[]int{1}},
	})
}

func TestXLSXStruckAndRaisedText(t *testing.T) {
	t.Parallel()
	run := func(text, props string) string {
		return "<r><rPr>" + props + `</rPr><t xml:space="preserve">` + text + "</t></r>"
	}
	const struck, raised, lowered = "<strike/>", `<vertAlign val="superscript"/>`, `<vertAlign val="subscript"/>`
	const head, tail = "## S\n\n| ", " | z |\n| --- | --- |\n| x | y |\n"
	for _, c := range []struct{ claim, runs, want string }{
		{"struck text is marked", run("Pay ", "") + run("10 ", struck) + run("20", "<b/>"), "Pay ~~10~~ 20"},
		{"a strike that is off", run("Pay ", "") + run("10", `<strike val="0"/>`), "Pay 10"},
		{"a raised number", run("10", "") + run("6", raised) + run(" km", ""), "10^6 km"},
		{"a raised word stays on the line", run("1", "") + run("st", raised), "1st"},
		{"a lowered number stays on the line", run("CO", "") + run("2", lowered), "CO2"},
		{"each struck line", run("a\nb", struck) + run("\nc", ""), "~~a~~<br>~~b~~<br>c"},
		{"characters by their numbers", run("a_x0041_", struck), "~~aA~~"},
	} {
		cell := "<row><c t=\"inlineStr\"><is>" + c.runs + `</is></c><c t="str"><v>z</v></c></row>` + cells("x", "y")
		shared := `<row r="1"><c r="A1" t="s"><v>1</v></c><c r="B1" t="str"><v>z</v></c></row>` + cells("x", "y")
		testReads(t, document.XLSX, []readCase{
			{c.claim + ", in a cell", xlsx([]sheet{{"S", "", cell}}), head + c.want + tail, []int{1}},
			{c.claim + ", shared", xlsx([]sheet{{"S", "", shared}}, "xl/sharedStrings.xml", `<sst xmlns="`+schemas+
				`spreadsheetml/2006/main"><si><t>plain</t></si><si>`+c.runs+`</si></sst>`), head + c.want + tail, []int{1}},
		})
	}
}

func TestXLSXInputMessages(t *testing.T) {
	t.Parallel()
	book := func(validation string) []byte {
		return xlsx([]sheet{{"S", "", cells("x") + "</sheetData>" + validation + "<sheetData>"}})
	}
	const head = "## S\n\nx\n"
	testReads(t, document.XLSX, []readCase{
		{"a message with a title", book(`<dataValidations><dataValidation sqref="A1 B2:B9" showInputMessage="1" ` +
			`promptTitle="Hours" prompt="Quarters only"/></dataValidations>`),
			head + "\nInput message on A1 B2:B9: Hours: Quarters only\n", []int{1}},
		{"messages without a title", book(`<dataValidations><dataValidation sqref="A1" ` +
			`showInputMessage="true" prompt="One"/>` +
			`<dataValidation sqref="A2" showInputMessage="1" prompt="Two"/></dataValidations>`),
			head + "\nInput message on A1: One\n\nInput message on A2: Two\n", []int{1}},
		{"a message of an extension", book(`<extLst><ext><x:dataValidations xmlns:x="urn:x"><x:dataValidation ` +
			`showInputMessage="1" prompt="Three"><sqref>A3</sqref></x:dataValidation></x:dataValidations></ext></extLst>`),
			head + "\nInput message on A3: Three\n", []int{1}},
		{"a message that is not shown", book(`<dataValidations><dataValidation sqref="A1" prompt="no"/></dataValidations>`),
			head, []int{1}},
	})
}

func TestXLSXSheets(t *testing.T) {
	t.Parallel()
	testReads(t, document.XLSX, []readCase{
		{"sheets are pages, in the order of the workbook", xlsx([]sheet{{"One", "", cells("a", "b")}, {"Two", "",
			cells("c")}}),
			"## One\n\n| a | b |\n| --- | --- |\n\n## Two\n\nc\n", []int{1, 6}},
		{"hidden sheets are left out", xlsx([]sheet{{"One", `state="hidden"`, cells("a")}, {"Two", `state="veryHidden"`,
			cells("b")}, {"Three", "", cells("c")}}),
			"## Three\n\nc\n", []int{1}},
		{"an empty sheet has no page", xlsx([]sheet{{"One", "", ""}, {"Two", "", cells("c")}}), "## Two\n\nc\n", []int{1}},
		{"blocks of rows are tables", xlsx([]sheet{{"S", "", cells("a", "b") + cells("1", "2") + "<row/>" + cells("c", "d") +
			cells("3", "4")}}),
			"## S\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| --- | --- |\n| 3 | 4 |\n", []int{1}},
		{"a title above a table", xlsx([]sheet{{"S", "", cells("Prices") + cells("a", "b") + cells("1", "2")}}),
			"## S\n\nPrices\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n", []int{1}},
		{"one column is lines", xlsx([]sheet{{"S", "", cells("a") + cells("b")}}), "## S\n\na\nb\n", []int{1}},
		{"empty columns before a table go", xlsx([]sheet{{"S", "", `<row><c r="D1" t="str"><v>a</v></c>` +
			`<c r="E1" t="str"><v>b</v></c></row>` +
			`<row r="2"><c r="D2" t="str"><v>c</v></c><c r="E2" t="str"><v>d</v></c></row>`}}),
			"## S\n\n| a | b |\n| --- | --- |\n| c | d |\n", []int{1}},
		{"a merged cell stands where it begins", xlsx([]sheet{{"S", "",
			`<row><c r="A1" t="str"><v>wide</v></c><c r="B1"/></row>` +
				`<row r="2"><c r="A2" t="str"><v>a</v></c><c r="B2" t="str"><v>b</v></c></row></sheetData><mergeCells>` +
				`<mergeCell ref="A1:B1"/></mergeCells><sheetData>`}}),
			"## S\n\nwide\n\n| a | b |\n| --- | --- |\n", []int{1}},
		{"rows left out are empty", xlsx([]sheet{{"S", "", `<row r="1"><c t="str"><v>a</v></c></row><row r="9">` +
			`<c t="str"><v>b</v></c></row>`}}),
			"## S\n\na\n\nb\n", []int{1}},
	})
}

func TestXLSXCellsOutsideOfTheSheet(t *testing.T) {
	t.Parallel()
	at := func(ref, s string) string { return `<c r="` + ref + `" t="str"><v>` + s + `</v></c>` }
	for _, ref := range []string{"XFE1", "ZZZZ1", "A0", "1", "A1048577", "A-1"} {
		t.Run(ref, func(t *testing.T) {
			t.Parallel()
			raw := xlsx([]sheet{{"S", "", `<row r="1">` + at("A1", "a") + at(ref, "lost") + at("C1", "c") + `</row>` +
				`<row r="2">` + at("A2", "d") + at("B2", "e") + `</row>`}})
			got, err := document.XLSX(bytes.NewReader(raw), int64(len(raw)))
			if want := "## S\n\n| a | #REF! | c |\n| --- | --- | --- |\n| d | e |\n"; err != nil || got.Text != want {
				t.Errorf("got %q, %v, want %q", got.Text, err, want)
			}
		})
	}
	testRefusals(t, document.XLSX, []refusal{
		{"a row of nothing else", xlsx([]sheet{{"S", "", "<row>" + strings.Repeat(at("A0", "x"), 1000) + "</row>"}}),
			"damaged"},
		{"a row outside of the sheet", xlsx([]sheet{{"S", "", `<row r="1048577">` + at("A1", "a") + "</row>"}}), "damaged"},
		{"strings that are cut", xlsx([]sheet{{"S", "", `<row><c t="s"><v>0</v></c></row>`}}, "xl/sharedStrings.xml",
			"<sst><si"), "damaged"},
	})
}

// A workbook that counts days from 1904 says so in its properties.
func TestXLSXDatesFrom1904(t *testing.T) {
	t.Parallel()
	book := func(properties string) []byte {
		row := "<row>" + number("1", "44650") + number("6", "44650.75") + number("5", "0.5") + number("0", "7") + "</row>"
		return xlsxWith(properties, []sheet{{"S", "", row}}, "xl/styles.xml", xlsxStyles)
	}
	const want = "## S\n\n| 2026-03-31 | 2026-03-31 18:00 | 12:00 | 7 |\n| --- | --- | --- | --- |\n"
	testReads(t, document.XLSX, []readCase{
		{"by a number", book(`<workbookPr date1904="1"/>`), want, []int{1}},
		{"by a word", book(`<workbookPr date1904="true"/>`), want, []int{1}},
		{"not where it is off", book(`<workbookPr date1904="0"/>`), strings.ReplaceAll(want, "2026-03-31", "2022-03-30"),
			[]int{1}},
	})
}

func TestXLSXLongSheetsAreRead(t *testing.T) {
	t.Parallel()
	raw := workbook(`<row><c t="inlineStr"><is><t>name</t></is></c><c><v>42</v></c><c t="b"><v>1</v></c></row>`, 50_000)(t)
	got, err := document.XLSX(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(got.Text, "| name | 42 | TRUE |\n"); rows != 50_000 {
		t.Errorf("%d rows of 50000, beginning %q", rows, got.Text[:min(len(got.Text), 200)])
	}
}
