package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files/document"
)

func TestHTML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tables", "lists", "code", "navigation"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata/html", name+".html"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := document.HTML(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, "html/"+name+".md", got)
		})
	}
}

func TestHTMLOfSmallPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"no tags", "just text", "just text\n"},
		{"the title is the first heading", "<title> My\n page </title><p>text", "# My page\n\ntext\n"},
		{"beside another first heading", "<title>Page</title><h1>Other</h1><p>text", "# Page\n\n# Other\n\ntext\n"},
		{"not if a first heading says it", "<title>Page</title><h2>A</h2><h1> Page</h1><p>text",
			"## A\n\n# Page\n\ntext\n"},
		{"a heading that says the same becomes it", "<title>My page</title><h2><a name=x></a>My\n<i>page</i></h2>text",
			"# My *page*\n\ntext\n"},
		{"an empty title is none", "<title> </title><p>text", "text\n"},
		{"the navigation of manuals goes", `<div class="navheader"><a href=x>Up</a></div><p>text</p>` +
			`<div class="navfooter">Next</div>`, "text\n"},
		{"by its role, too", `<div role="navigation"><a href=x>Up</a></div><p>text</p>`, "text\n"},
		{"text stays as it is shown", "<p>if a &lt; b_c_d && *x* > 1.&nbsp;#2</p>", "if a < b_c_d && *x* > 1. #2\n"},
		{"pipes in cells", "<table><tr><td>a|b<td><code>c|d</code><tr><td>e<td>f</table>|",
			"| a\\|b | `c\\|d` |\n|---|---|\n| e | f |\n\n|\n"},
		{"pipes in a table that is laid out as text", "<table><tr><td>a|b<ul><li>c|d</ul></table>", "a|b\n\n- c|d\n"},
		{"a bell is not a mark", "<p>a\ab|c</p>", "ab|c\n"},
		{"raised numbers", "<p>10<sup>6</sup> m<sup>n+1</sup> 1<sup>st</sup> H<sub>2</sub>O", "10^6 m^(n+1) 1st H2O\n"},
		{"raised numbers with other marks", "<p>10<sup>&minus;3</sup> 10<sup><b>6</b></sup> <b>10<sup>6</sup></b> " +
			"10<i><sup>6" +
			"</sup></i> 10<sup> 6 </sup> 10<span style='font-size:8px; vertical-align: super'>6</span>",
			"10^−3 10^6 **10^6** 10*^6* 10^6 10^6\n"},
		{"what an object shows where it is not shown", "a<object data=x.pdf type=application/pdf><p>See <a href=y>the " +
			"other page</a>.</object>", "a\n\nSee [the other page](y).\n"},
		{"struck text", "<p>a <s>b</s> <del>c</del> <strike>d</strike> <span style='text-decoration: red " +
			"line-through'>e</span>" +
			"<p style='text-decoration:underline'>f", "a ~~b~~ ~~c~~ ~~d~~ ~~e~~\n\nf\n"},
		{"values of fields", "<label>Name: <input value='Bob'></label> <input type=hidden value=no><input type=password " +
			"value=no><input type=submit value=no><input TYPE=Checkbox checked> yes <input type=radio> no" +
			"<input hidden value=no><div hidden><input value=no></div>", "Name: Bob ☒ yes ☐ no\n"},
		{"text in areas", "<p>Note: <textarea>\none\n  two *</textarea>", "Note: one  \ntwo *\n"},
		{"fields side by side", "<p><input value=a><input value=b><input type=radio checked>c", "a b ☒ c\n"},
		{"selected options", "<p>Size: <select><option>1<option selected>2 <b>m</b></select> <select " +
			"multiple><optgroup><option" +
			" selected>a<option selected>b</select>", "Size: 2 m a, b\n"},
		{"a group of fields", "<fieldset><legend>Address</legend><label>City <input value=Bonn></label></fieldset>",
			"Address\n\nCity Bonn\n"},
		{"values in cells", "<table><tr><td>A<td><input value='a|b'></table>", "| A | a\\|b |\n|---|---|\n"},
		{"a raised mark that begins", "<p><sup>1</sup> See above", "1 See above\n"},
		{"definitions", "<dl><dt>a<dd>b<p>c<dt>d<dd>e</dl>", "a\n\n: b\n  \n  c\n\nd\n\n: e\n"},
		{"a link without text goes", "<p><a href=''>a</a> <a href='x'></a>b", "[a]() b\n"},
		{"hidden elements go", "<p>text<span hidden>no</span><p hidden=until-found>no<div><b HIDDEN>no</b></div>", "text\n"},
		{"elements without display go", `<p>text</p><div style="color:red; DISPLAY : none !important">no</div>` +
			`<div style="display:/**/none">no</div><p style="display: block">more`, "text\n\nmore\n"},
		{"invisible elements go", `<p>text<span style='visibility:hidden'>no</span> more`, "text more\n"},
		{"an element that only names hiding stays", `<p style="--x-display:none" data-hidden class=hidden>text`, "text\n"},
		{"what is hidden only from screen readers stays", `<p aria-hidden=true>text`, "text\n"},
		{"a page that its script shows stays", `<body style="display:none" hidden><p>text`, "text\n"},
		{"closed dialogs go, open ones stay", "<dialog>no</dialog><dialog open>text</dialog>", "text\n"},
		{"what stands in for scripts, frames and lists goes", "<noscript>no</noscript><p>text</p><noframes>no</noframes>" +
			"<noembed>no</noembed><datalist><option>no</datalist><template>no</template><iframe>no</iframe><!-- no -->",
			"text\n"},
		{"buttons go", "<p>text</p><button>Press</button>", "text\n"},
		{"a list shows its first option if none is selected", "<p>Size: <select><option>1<option>2</select> " +
			"<select multiple><option>3</select><select size=4><option>4</select>", "Size: 1\n"},
		{"raised numbers before other characters", "<p>2<sup>10</sup>24 x<sup>2</sup>y 2<sup>10</sup> 24",
			"2^(10)24 x^(2)y 2^10 24\n"},
		{"formulas", "<p><math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> cup, <math><mfrac><mrow><mi>a</mi><mo>+</mo>" +
			"<mi>b</mi></mrow><mi>c</mi></mfrac><msup><mi>x</mi><mn>2</mn></msup><msqrt><mi>y</mi></msqrt></math>",
			"1/2 cup, (a+b)/cx^2√(y)\n"},
		{"numbers of lists that jump", "<ol start=5><li>five<li value=9>nine<li>ten</ol>", "5. five\n\n9. nine\n\n10. ten\n"},
		{"numbers of lists that run backwards", "<ol reversed><li>b<li>a</ol>", "2. b\n\n1. a\n"},
		{"lines of elements that converters do not know", "<details><summary>Shipping</summary>takes 3 days</details>" +
			"<center>Title</center>text<menu><li>Save</menu>end",
			"Shipping\n\ntakes 3 days\n\nTitle\n\ntext\n\n- Save\n\nend\n"},
		{"words in drawings", "<p>Plan: <svg><style>x{}</style><title>Ground floor</title><text x=1>Hall <tspan>A</tspan>" +
			"</text><text>Exit</text></svg> and <svg aria-label='the harbour'><path/></svg>",
			"Plan: [Picture: Ground floor]  \nHall A  \nExit and [Picture: the harbour]\n"},
		{"what an abbreviation stands for", "<p><abbr title='Czech koruna'>CZK</abbr> <abbr title=x>x</abbr>",
			"CZK (Czech koruna) x\n"},
		{"struck text in code", "<pre>a <del>b</del>\nc</pre>", "```\na ~~b~~\nc\n```\n"},
		{"characters that are not shown", "<p>soft&shy;hyphen zero&#8203;width &#8238;word&#8236; &#x1F468;&zwj;&#x1F469;",
			"softhyphen zerowidth word \U0001F468\u200d\U0001F469\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := document.HTML(tt.raw); err != nil || got != tt.want {
				t.Errorf("HTML(%q) = %q, %v, want %q", tt.raw, got, err, tt.want)
			}
		})
	}
}

// Text that stylesheets hide from the reader of a page is left out.
func TestHTMLHiddenByStylesheets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, style, body, want string }{
		{"a class", ".x{display:none}", `<p>text<p class="a x">no`, "text\n"},
		{"an id, invisible", "/* { */ p#x { color: red; VISIBILITY : Hidden }", `<p>text<p id=x>no<p class=x>more`,
			"text\n\nmore\n"},
		{"what is in it goes, too", ".x{display:none}", `<p>text<div class=x><p>no<div>no</div></div>`, "text\n"},
		{"one of several selectors", "h1, div > .x , b{display:none}",
			`text<div><i class=x>no</i> more</div><i class=x>i</i>`, "text\n\nmore\n\n*i*\n"},
		{"below another element", ".a .x{display:none}", `<p>text<div class=a><p class=x>no</div><p class=x>more`,
			"text\n\nmore\n"},
		{"on screens", "@media screen, print{.x{display:none}}", `<p>text<p class=x>no`, "text\n"},
		{"not on paper only", "@media print{.x{display:none}}", `<p>text<p class=x>more`, "text\n\nmore\n"},
		{"not on small screens only", "@media (max-width: 600px){.x{display:none}}", `<p>text<p class=x>more`,
			"text\n\nmore\n"},
		{"not what some screens show", ".x{display:none} @media (min-width: 600px){.x{display:block}}",
			`<p>text<p class=x>more`, "text\n\nmore\n"},
		{"a later rule shows", ".x{display:none}.y{display:block}", `<p>text<p class="x y">more`, "text\n\nmore\n"},
		{"a more specific rule shows", "p.y{display:block}.x{display:none}", `<p>text<p class="x y">more`,
			"text\n\nmore\n"},
		{"an important rule hides", ".x{display:none!important}p.y.x{display:block}", `<p>text<p class="x y">no`, "text\n"},
		{"an element's own style shows", ".x{display:none}", `<p>text<p class=x style="display:block">more`,
			"text\n\nmore\n"},
		{"not where an element is touched", ".x:hover{display:none}", `<p>text<p class=x>more`, "text\n\nmore\n"},
		{"not within another rule", ".y{.x{display:none}}", `<p>text<p class=x>more`, "text\n\nmore\n"},
		{"not the page itself", "body,html{display:none}", `<p>text`, "text\n"},
		{"a damaged rule hides nothing", ".x{{display:none}} .y{display", `<p class=x>text<p class=y>more`,
			"text\n\nmore\n"},
		{"a rule after a damaged one", ".z{{}} @x; }} .x{display:none", `<p>text<p class=x>no`, "text\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := "<style>" + tt.style + "</style>" + tt.body
			if got, err := document.HTML(raw); err != nil || got != tt.want {
				t.Errorf("HTML(%q) = %q, %v, want %q", raw, got, err, tt.want)
			}
		})
	}
	other := `<style media=print>.x{display:none}</style><style type="text/x">.x{display:none}</style><p class=x>text`
	if got, err := document.HTML(other); err != nil || got != "text\n" {
		t.Errorf("styles of another kind: %q, %v", got, err)
	}
}

// A page with too many rules and elements to compare keeps its text.
func TestHTMLWithHostileStylesheetsIsRead(t *testing.T) {
	t.Parallel()
	rules := strings.Repeat("* * p{display:none} ", 3_000)
	raw := "<style>" + rules + "</style>" + strings.Repeat("<div>", 400) + strings.Repeat("<p>text", 10_000)
	got, err := document.HTML(raw)
	if err != nil || strings.Count(got, "text") < 9_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestHostileHTMLIsStripped(t *testing.T) {
	t.Parallel()
	const body = "<title>t</title><script>no()</script><div hidden>no()<div>no()</div>no()</div><p style='display:none'>" +
		"no()<p>one <b>two</b></p><noscript>no()</noscript><br hidden><input hidden><dialog>no()</dialog>"
	const text = "one two"
	fonts := strings.Builder{}
	for range 400 {
		fonts.WriteString("<font size=" + strings.Repeat("1", fonts.Len()%97) + ">")
	}
	for name, raw := range map[string]string{
		"deep":            strings.Repeat("<div>", 2000) + body,
		"deep quotations": strings.Repeat("<blockquote>", 100) + body,
		"unclosed fonts":  fonts.String() + body + strings.Repeat("<p>x", 100_000),
		"a wide table": body + "<table>" + strings.Repeat("<tr><td>x", 2000) + "<tr>" + strings.Repeat("<td>", 2000) +
			"</table>",
		"spans":             body + `<table><tr><td colspan=999999999 rowspan="999999999">x</table>`,
		"a million of tags": body + strings.Repeat("<p>x", 1_000_001),
	} {
		got, err := document.HTML(raw)
		if err != nil || !strings.Contains(got, text) || strings.Contains(got, "no()") || len(got) > 2*len(raw) {
			t.Errorf("%s: %d bytes of %d, %.60q, %v, want %q", name, len(got), len(raw), got, err, text)
		}
	}
}

func TestHTMLIsAlwaysText(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"<p>", "</p>", "<table>", "<tr>", "<td>", "<ul>", "<li>", "<pre>", "<code>",
		"<h1>", "<dl>", "<dt>", "<dd>", "<a href=x>", "</a>",
		"<b>", "</b>", "<nav>", "<title>", "<script>", "</script>", "<!--", "-->", "<", "&#0;", "&lt;", "\x00", "*", "|",
		"\n", "text", "é", "<svg>", "<br>", "<img src=x>", "</table>"})
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		got, err := document.HTML(raw)
		if err != nil || !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > 64*len(raw)+64 {
			t.Fatalf("HTML(%q) = %q, %v", raw, got, err)
		}
	})
}

func TestPicturesAndSoundOfAPage(t *testing.T) {
	t.Parallel()
	raw := "<p>a<img src=x.png><img src='data:image/png;base64,AAAA'><img src='DATA:image/png;base64,AAAA' alt=boat>" +
		"<img src=y.png alt=quay><video src=v>old</video><audio src=a></audio><embed src=e>b"
	got, err := reader.Read(t.Context(), document.Input{MediaType: "text/html", SizeBytes: int64(len(raw)),
		Body: strings.NewReader(raw)})
	if want := "a![](x.png)[Picture: boat]![quay](y.png)oldb\n"; err != nil || got.Text != want {
		t.Errorf("got %q, %v, want %q", got.Text, err, want)
	}
	want := "2 pictures without text (LOCI_OCR_COMMAND would have them read), 2 audio or video, 1 embedded page"
	if said := document.ListOmissions(got.Omitted); said != want {
		t.Errorf("omitted %q, want %q", said, want)
	}
}

func TestHTMLSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	raw := "<nav>Home</nav><p>text<iframe src=x></iframe><svg></svg><canvas></canvas><p hidden>no<p " +
		"hidden></p><button>Go</button>" +
		"<script>no()</script><input type=hidden value=no><p>more<noscript><img src=x></noscript><noscript>Switch on" +
		"</noscript>"
	got, err := reader.Read(t.Context(), document.Input{MediaType: "text/html", SizeBytes: int64(len(raw)),
		Body: strings.NewReader(raw)})
	want := "1 embedded page, 2 pictures without text, 2 hidden text, 1 navigation"
	if said := document.ListOmissions(got.Omitted); err != nil || said != want {
		t.Errorf("got %q, %v, want %q", said, err, want)
	}
}
