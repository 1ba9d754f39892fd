package document_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

func TestIPYNB(t *testing.T) {
	t.Parallel()
	book := func(cells string) []byte {
		return []byte(`{"nbformat":4,"metadata":{"kernelspec":{"language":"Python"}},"cells":[` + cells + `]}`)
	}
	code := func(source, outputs string) string {
		return `{"cell_type":"code","source":` + source + `,"outputs":[` + outputs + `]}`
	}
	display := func(plain, versions string) string {
		return `{"output_type":"display_data","data":{"text/plain":"` + plain + `",` + versions + `}}`
	}
	markdown := func(source string) string { return `{"cell_type":"markdown","source":` + source + `}` }
	testReads(t, document.IPYNB, []readCase{
		{"Markdown stays, code is fenced with its language", book(markdown(`["# Tides\n","\n","high"]`) + "," +
			code(`"x = 1"`, "")),
			"# Tides\n\nhigh\n\n```python\nx = 1\n```\n", nil},
		{"the language may be in language_info", []byte(`{"metadata":{"language_info":{"name":"R"}},"cells":[` + code(`"x"`,
			"") + `]}`), "```r\nx\n```\n", nil},
		{"what is no language's name is none", []byte("{\"metadata\":{\"language_info\":{\"name\":\"a`b\"}},\"cells\":[" +
			code(`"x"`, "") + "]}"), "```\nx\n```\n", nil},
		{"outputs lose their colours, and lines written over", book(code(`["a\n","b"]`,
			`{"output_type":"error","ename":"E","evalue":"bad","traceback":["\u001b[0;31mE\u001b[0m: bad"]},`+
				`{"output_type":"stream","text":"10%\r50%\r100%\r\nend\n"},`+
				`{"output_type":"display_data","data":{"image/png":"aGVsbG8=","text/plain":"<Figure>"}}`)),
			"```python\na\nb\n```\n\n```\nE: bad\n```\n\n```\n100%\nend\n```\n\n```\n<Figure>\n```\n", nil},
		{"an error without a trace", book(code(`"x"`, `{"output_type":"error","ename":"E","evalue":"bad","traceback":[]}`)),
			"```python\nx\n```\n\n```\nE: bad\n```\n", nil},
		{"a page is shown where there is no plain text", book(code(`"x"`,
			`{"output_type":"display_data","data":{"text/html":["<p>a <b>b</b></p>"]}}`)),
			"```python\nx\n```\n\na **b**\n", nil},
		{"Markdown is shown rather than plain text", book(code(`"x"`,
			`{"output_type":"execute_result","data":{"text/plain":["<M>"],"text/markdown":["**m**"]}}`)),
			"```python\nx\n```\n\n**m**\n", nil},
		{"a table is shown rather than the name of its object", book(code(`"x"`, display("<pandas.Styler at 0x7f>",
			`"text/html":"<table><tr><th>a</th></tr><tr><td>7</td></tr></table>"`))),
			"```python\nx\n```\n\n| a |\n|---|\n| 7 |\n", nil},
		{"so are formulas, values and words of drawings", book(code(`"x"`, display("<Latex object>", `"text/latex":"$a^2$"`)+
			","+display("<JSON object>", `"application/json":{"k": 7}`)+","+
			display("<SVG object>", `"image/svg+xml":["<svg><text>north</text></svg>"]`))),
			"```python\nx\n```\n\n$a^2$\n\n```json\n{\"k\": 7}\n```\n\nnorth\n", nil},
		{"plain text that says something stays", book(code(`"x"`, display("a 7", `"text/html":"<p>b</p>"`))),
			"```python\nx\n```\n\n```\na 7\n```\n", nil},
		{"an error that its trace does not name", book(code(`"x"`, `{"output_type":"error","ename":"E","evalue":"bad",`+
			`"traceback":["line 1"]}`)), "```python\nx\n```\n\n```\nE: bad\nline 1\n```\n", nil},
		{"a fence is longer than those in it", book(code("\"```\"", "")), "````python\n```\n````\n", nil},
		{"empty lines go, but not in code", book(markdown("\"a  \\n\\n\\n\\n~~~\\nx\\n\\n\\ny\\n~~~\\nb\\u0000\"")),
			"a\n\n~~~\nx\n\n\ny\n~~~\nb\n", nil},
		{"empty cells and nulls are none", book(`null,{},` + code(`null`, "null") + "," + markdown(`[]`) + "," +
			markdown(`"a"`)), "a\n", nil},
		{"texts of other types are none", book(`{"cell_type":"raw","source":{"a":1}},` + markdown(`"a"`)), "a\n", nil},
		{"nbformat 3 has its cells in worksheets",
			[]byte(`{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"heading","level":2,"source":["Tides"]},` +
				`{"cell_type":"code","language":"python","input":"x = 1","outputs":[{"output_type":"pyout","text":["1"]}]}]}]}`),
			"## Tides\n\n```python\nx = 1\n```\n\n```\n1\n```\n", nil},
		{"a byte order mark", append([]byte("\ufeff"), book(markdown(`"é"`))...), "é\n", nil},
		{"UTF-16 with a mark", []byte(utf16LE(string(book(markdown(`"größer"`))))), "größer\n", nil},
		{"UTF-16 without a mark", []byte(utf16LE(string(book(markdown(`"größer"`))))[2:]), "größer\n", nil},
		{"JSON that is no notebook is read as it is", []byte("\ufeff{\"a\": [1,2],\r\n\"b\": \"é\"}\n"),
			"{\"a\": [1,2],\n\"b\": \"é\"}\n", nil},
		{"JSON that is a list is no notebook", []byte("[1,2]\n"), "[1,2]\n", nil},
		{"null where a list is expected", []byte(`{"nbformat":4,"metadata":null,"worksheets":null,"cells":[` +
			`{"cell_type":"code","source":"x","outputs":null},{"cell_type":"code","source":"y","outputs":[{"output_type":` +
			`"error","ename":"E","evalue":"bad","traceback":null},{"output_type":"display_data","data":null}]}]}`),
			"```\nx\n```\n\n```\ny\n```\n\n```\nE: bad\n```\n", nil},
		{"values of other types are none", []byte(`{"nbformat":4,"metadata":{"kernelspec":"python","language_info":[]},` +
			`"worksheets":7,"cells":["a",3,{"cell_type":["x"],"source":"hidden"},{"cell_type":"heading","level":"2",` +
			`"source":"Tides"},{"cell_type":"code","source":["y",{"a":1},"z"],"outputs":[1,{"output_type":4},` +
			`{"output_type":"display_data","data":"png"},{"output_type":"error","ename":5,"evalue":"bad","traceback":"E"}]}]}`),
			"hidden\n\n# Tides\n\n```\nyz\n```\n\n```\n: bad\n```\n", nil},
	})
	testRefusals(t, document.IPYNB, []refusal{
		{"JSON that is cut", []byte(`{"cells":[{"source":"a"`), "damaged"},
		{"a notebook without cells", []byte(`{"cells":[],"nbformat":4}`), "no text"},
		{"a notebook of images", book(code(`""`, `{"output_type":"display_data","data":{"image/png":"aGVsbG8="}}`)),
			"no text"},
	})
}

func TestSniffFindsNotebooks(t *testing.T) {
	t.Parallel()
	const book = `{"cells": [{"cell_type": "markdown", "source": "a"}], "nbformat": 4}`
	for claim, raw := range map[string]string{"UTF-8": book, "a mark": "\ufeff" + book, "UTF-16": utf16LE(book),
		"UTF-16 without a mark": utf16LE(book)[2:]} {
		if got, err := document.Sniff("a.ipynb", "", strings.NewReader(raw),
			int64(len(raw))); got != "application/x-ipynb+json" {
			t.Errorf("%s: got %q, %v, want a notebook", claim, got, err)
		}
	}
}
