package document_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files/document"
)

// author draws documents of random structure in which each word occurs once.
type author struct {
	t     *rapid.T
	words int
	depth int
}

// word returns a new word. A space ends it.
func (a *author) word() string {
	a.words++
	return fmt.Sprintf("w%dw ", a.words)
}

// oneOf calls one of the functions; at depth, only one of the first two.
func (a *author) oneOf(write ...func() string) string {
	if a.depth > 3 {
		write = write[:2]
	}
	a.depth++
	defer func() { a.depth-- }()
	return write[rapid.IntRange(0, len(write)-1).Draw(a.t, "kind")]()
}

// some returns up to three results of write.
func (a *author) some(write func() string) string {
	all := ""
	for range rapid.IntRange(1, 3).Draw(a.t, "times") {
		all += write()
	}
	return all
}

func (a *author) draw(of ...string) string { return rapid.SampledFrom(of).Draw(a.t, "choice") }

func (a *author) wordBlock() string {
	return a.oneOf(
		func() string { return "<w:p>" + a.some(a.wordRun) + "</w:p>" },
		func() string {
			return "<w:p><w:pPr>" + a.draw(`<w:outlineLvl w:val="1"/>`, `<w:pStyle w:val="Quote"/>`,
				`<w:numPr><w:ilvl w:val="3"/><w:numId w:val="1"/></w:numPr>`, `<w:numPr><w:numId w:val="1"/></w:numPr>`,
				"<w:rPr><w:del/></w:rPr>") + "</w:pPr>" + a.some(a.wordRun) + "</w:p>"
		},
		func() string {
			return "<w:tbl>" + a.some(func() string {
				return "<w:tr>" + a.some(func() string {
					return "<w:tc>" + a.some(a.wordBlock) + "</w:tc>"
				}) + "</w:tr>"
			}) + "</w:tbl>"
		},
		func() string { return "<w:sdt><w:sdtContent>" + a.some(a.wordBlock) + "</w:sdtContent></w:sdt>" },
	)
}

func (a *author) wordRun() string {
	return a.oneOf(
		func() string { return run(a.word()) },
		func() string {
			return run(a.word(), a.draw("<w:strike/>", `<w:rFonts w:ascii="Courier"/>`, `<w:vertAlign w:val="superscript"/>`))
		},
		func() string { return `<w:hyperlink r:id="a">` + a.some(a.wordRun) + "</w:hyperlink>" },
		func() string { return "<w:ins>" + a.some(a.wordRun) + "</w:ins>" },
		func() string { return "<w:r><w:br/><w:t>" + a.word() + "</w:t><w:lastRenderedPageBreak/></w:r>" },
		func() string {
			return "<w:r><w:drawing><w:txbxContent>" + a.some(a.wordBlock) + "</w:txbxContent></w:drawing></w:r>"
		},
	)
}

func (a *author) odfBlock() string {
	return a.oneOf(
		func() string { return textP(a.some(a.odfInline)) },
		func() string { return "<text:h>" + a.some(a.odfInline) + "</text:h>" },
		func() string { return "<text:list>" + a.some(a.odfItem) + "</text:list>" },
		func() string {
			return "<table:table>" + a.some(func() string {
				return "<table:table-row>" + a.some(func() string {
					return "<table:table-cell>" + a.some(a.odfBlock) + "</table:table-cell>"
				}) + "</table:table-row>"
			}) + "</table:table>"
		},
		func() string { return "<text:section>" + a.some(a.odfBlock) + "</text:section>" },
	)
}

func (a *author) odfItem() string {
	return "<text:list-item>" + a.some(a.odfBlock) + "</text:list-item>"
}

func (a *author) odfInline() string {
	return a.oneOf(
		func() string { return a.word() },
		func() string { return "<text:line-break/>" + a.word() + "<text:tab/><text:soft-page-break/>" },
		func() string {
			return `<text:span text:style-name="Source_20_Text">` + a.some(a.odfInline) + "</text:span>"
		},
		func() string { return `<text:a xlink:href="https://example.org">` + a.some(a.odfInline) + "</text:a>" },
		func() string {
			return "<draw:frame><draw:text-box>" + a.some(a.odfBlock) + "</draw:text-box></draw:frame>"
		},
	)
}

func (a *author) slideShape() string {
	return a.oneOf(
		func() string {
			return shape(a.draw("", "body", "title", "subTitle"), a.some(func() string {
				return line(a.draw("", `<a:pPr lvl="2"/>`, "<a:pPr><a:buAutoNum/></a:pPr>", "<a:pPr><a:buNone/></a:pPr>"), a.word())
			}))
		},
		func() string {
			return "<a:tbl>" + a.some(func() string {
				return "<a:tr>" + a.some(func() string { return "<a:tc>" + line("", a.word()) + "</a:tc>" }) + "</a:tr>"
			}) + "</a:tbl>"
		},
		func() string { return "<p:grpSp>" + a.some(a.slideShape) + "</p:grpSp>" },
	)
}

func (a *author) htmlBlock() string {
	return a.oneOf(
		func() string { return "<p>" + a.some(a.htmlInline) + "</p>" },
		func() string { return a.some(a.htmlInline) },
		func() string { return "<ul>" + a.some(func() string { return "<li>" + a.some(a.htmlBlock) }) + "</ul>" },
		func() string { return "<h2>" + a.some(a.htmlInline) + "</h2>" },
		func() string {
			return "<table>" + a.some(func() string {
				return "<tr>" + a.some(func() string { return "<td>" + a.some(a.htmlBlock) + "</td>" }) + "</tr>"
			}) + "</table>"
		},
		func() string { return "<dl><dt>" + a.word() + "<dd>" + a.some(a.htmlBlock) + "</dl>" },
		func() string { return "<blockquote>" + a.some(a.htmlBlock) + "</blockquote>" },
		func() string { return "<pre><code>" + a.word() + "</code></pre>" },
	)
}

func (a *author) htmlInline() string {
	return a.oneOf(
		func() string { return a.word() },
		func() string { return "<br>" + a.word() },
		func() string { return "<b>" + a.some(a.htmlInline) + "</b>" },
		func() string { return "<code>" + a.word() + "</code>" },
		func() string { return "<sup>" + a.word() + "</sup>" },
		func() string { return `<a href="https://example.org">` + a.word() + "</a>" },
	)
}

var wordsOfAuthors = regexp.MustCompile(`w[0-9]+w`)

// TestNoWordIsLost: each word of a document is in its text once, whatever the document's structure.
func TestNoWordIsLost(t *testing.T) {
	t.Parallel()
	links := []string{"word/_rels/document.xml.rels", relations("a", "hyperlink", "https://example.org")}
	for format, write := range map[string]func(a *author) ([]byte, document.Reader){
		"docx": func(a *author) ([]byte, document.Reader) { return docx(a.some(a.wordBlock), links...), document.DOCX },
		"odt":  func(a *author) ([]byte, document.Reader) { return odf("text", a.some(a.odfBlock)), document.ODT },
		"odp": func(a *author) ([]byte, document.Reader) {
			return odf("presentation", "<draw:page>"+a.some(a.odfBlock)+"</draw:page>"), document.ODP
		},
		"pptx": func(a *author) ([]byte, document.Reader) {
			return pptx([]string{a.some(a.slideShape), a.some(a.slideShape)}), document.PPTX
		},
		"epub": func(a *author) ([]byte, document.Reader) {
			return epub(a.word(), "a.xhtml", "<html><body>"+a.some(a.htmlBlock)+"</body></html>"), document.EPUB
		},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				a := &author{t: t}
				raw, read := write(a)
				got, err := read(bytes.NewReader(raw), int64(len(raw)))
				if err != nil {
					t.Fatalf("%d words: %v", a.words, err)
				}
				found := map[string]int{}
				for _, word := range wordsOfAuthors.FindAllString(got.Text, -1) {
					found[word]++
				}
				for i := range a.words {
					if n := found[fmt.Sprintf("w%dw", i+1)]; n != 1 {
						t.Fatalf("w%dw is there %d times in %q", i+1, n, got.Text)
					}
				}
			})
		})
	}
}

// vandal draws XML from a list of elements and one of attributes. Elements may be left open.
func vandal(elements, withAttributes string) *rapid.Generator[string] {
	names, attributes := strings.Fields(elements), append(strings.Fields(withAttributes), "")
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		var open []string
		for range rapid.IntRange(0, 60).Draw(t, "pieces") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			attribute := rapid.SampledFrom(attributes).Draw(t, "attribute")
			switch rapid.IntRange(0, 9).Draw(t, "piece") {
			case 0, 1, 2, 3:
				b.WriteString("<" + name + " " + attribute + ">")
				open = append(open, name)
			case 4, 5:
				b.WriteString("<" + name + " " + attribute + "/>")
			case 6, 7:
				b.WriteString(rapid.SampledFrom([]string{"a ", " ", "\n", "1", "|", "`", "é", "&amp;", "\u00a0"}).Draw(t, "text"))
			default:
				if len(open) > 0 {
					b.WriteString("</" + open[len(open)-1] + ">")
					open = open[:len(open)-1]
				}
			}
		}
		for i := len(open) - 1; i >= 0 && rapid.IntRange(0, 50).Draw(t, "cut") > 0; i-- {
			b.WriteString("</" + open[i] + ">")
		}
		return b.String()
	})
}

// TestAnyXMLGivesTextOrASentence: elements may stand anywhere, with any attributes.
func TestAnyXMLGivesTextOrASentence(t *testing.T) {
	t.Parallel()
	word := vandal(`w:p w:r w:t w:pPr w:rPr w:numPr w:ilvl w:numId w:tbl w:tr w:tc w:tcPr w:gridSpan w:vMerge w:sdt
		w:hyperlink w:fldChar w:instrText w:del w:ins w:br w:drawing w:txbxContent w:footnoteReference
		w:lastRenderedPageBreak m:oMath m:f m:num m:sup m:t w:rFonts w:outlineLvl`,
		`w:val="1" w:val="-7" w:val="x" w:id="1" r:id="a" w:fldCharType="begin" w:fldCharType="end" w:ascii="Courier"
		w:val="999999999999"`)
	odfXML := vandal(`text:p text:h text:list text:list-item text:list-header text:span text:a text:s text:tab text:note
		text:note-body table:table table:table-row table:table-cell table:covered-table-cell draw:frame draw:text-box
		draw:page draw:object presentation:notes text:soft-page-break text:section`,
		`text:style-name="Title" table:number-columns-repeated="3" table:number-rows-repeated="-1" text:c="9999999"
		text:outline-level="0" text:start-value="5" text:continue-numbering="true" presentation:class="title"
		xlink:href="https://a"`)
	slides := vandal(`p:sp p:txBody p:nvSpPr p:nvPr p:ph a:p a:r a:t a:pPr a:rPr a:buChar a:buAutoNum a:tbl a:tr a:tc a:br
		a:fld p:grpSp dgm:relIds a:latin m:oMath m:t`,
		`lvl="8" lvl="-1" type="title" type="body" startAt="99999" r:id="s1" r:dm="s1" typeface="Courier" baseline="1"`)
	rows := vandal("row c v f is t mergeCells mergeCell sheetData", `r="A1" r="XFD9" r="ZZZZ1" r="7" r="-1" t="s" t="b"
		t="str" t="inlineStr" s="1" s="99" ref="A1:B2"`)
	rapid.Check(t, func(t *rapid.T) {
		part := word.Draw(t, "word")
		readAny(t, document.DOCX, docx(part, "word/styles.xml", wordPart("styles", word.Draw(t, "styles")),
			"word/numbering.xml", wordPart("numbering", part), "word/footnotes.xml", wordPart("footnotes", part)))
		part = odfXML.Draw(t, "odf")
		readAny(t, document.ODT, odf("text", part, "styles.xml", odfStyles(part)))
		readAny(t, document.ODS, odf("spreadsheet", part))
		readAny(t, document.ODP, odf("presentation", part))
		readAny(t, document.PPTX, pptx([]string{slides.Draw(t, "slide")}))
		readAny(t, document.XLSX, xlsx([]sheet{{"S", "", rows.Draw(t, "rows")}}, "xl/styles.xml", xlsxStyles))
	})
}

// readAny fails unless a document gives a clean text or an *UnreadableError.
func readAny(t *rapid.T, read document.Reader, raw []byte) {
	got, err := read(bytes.NewReader(raw), int64(len(raw)))
	switch {
	case err != nil && !isUnreadable(err):
		t.Fatalf("got %v, want an *UnreadableError", err)
	case err != nil:
	case !utf8.ValidString(got.Text) || strings.ContainsAny(got.Text, "\x00\r") || !strings.HasSuffix(got.Text, "\n"):
		t.Fatalf("not clean: %q", got.Text)
	case len(got.Text) > 1000*len(raw):
		t.Fatalf("%d bytes of text from %d", len(got.Text), len(raw))
	}
}

// TestDecodeKeepsLines: line n of a text is line n of its file, in any encoding and with any line ends.
func TestDecodeKeepsLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9 äöüß,;"|]{0,30}`), 2, 20).Draw(t, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r", "\u0085"}).Draw(t, "end")
		lines[0] = "größer"
		raw := strings.Join(lines, end)
		for charset, raw := range map[string]string{"utf-8": raw, "utf-16le": utf16LE(raw)} {
			got, found, err := document.Decode([]byte(raw), "")
			if want := strings.Join(lines, "\n"); err != nil || got != want || found != charset {
				t.Fatalf("got %q as %s, %v, want %q as %s", got, found, err, want, charset)
			}
		}
	})
}
