package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// HTML returns a page as Markdown: headings, lists, tables, code and links. Raised numbers,
// struck text and the values of form fields are shown. It leaves out scripts, styles, buttons,
// elements that the page hides when it opens (by attributes or a style element), and navigation unless there is nothing
// else. A page without a first-level heading gets its title as one. A page beyond the limits of layout (more than 500
// levels of elements, a million table cells, or a million elements) becomes plain text, without elements that its
// attributes hide. Time and space are linear.
func HTML(raw string) (markdown string, err error) { return readHTML(raw, &omissions{}) }

// readHTML is HTML. It notes what it leaves out.
func readHTML(raw string, omitted *omissions) (markdown string, err error) {
	if !isInBounds(raw) {
		return stripTags(raw), nil
	}
	doc, err := html.Parse(strings.NewReader(raw))
	if err != nil || isOutOfProportion(doc, 0, new(int)) {
		return stripTags(raw), nil //nolint:nilerr // a page that cannot be laid out is read as text
	}
	showForms(doc)
	showSpecial(doc)
	dropInvisible(doc, omitted)
	omitMedia(doc, omitted)
	showStyles(doc)
	addTitle(doc)
	if markdown, err = toMarkdown(doc); err != nil {
		return stripTags(raw), nil //nolint:nilerr // as above
	}
	return visible(plainCharacters.Replace(markdown)), nil
}

// escaped precedes a character that must be escaped if it would break a table.
const escaped = string(marker.MarkerEscaping)

// plainCharacters replaces characters that a search would not match.
var plainCharacters = strings.NewReplacer("\x00", "\ufffd", "\u00a0", " ", escaped, "")

// unescaped undoes the converter's escapes, so that a search finds identifiers and operators as the page shows them.
var unescaped = strings.NewReplacer("&lt;", "<", "&gt;", ">")

// toMarkdown returns an error if the converter panics on a page that it does not expect.
func toMarkdown(doc *html.Node) (markdown string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("convert HTML: %v", p)
		}
	}()
	text, err := newConverter().ConvertNode(doc)
	if err != nil || len(text) == 0 {
		return "", err
	}
	return string(text) + "\n", nil
}

func newConverter() *converter.Converter {
	conv := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), strikethrough.NewStrikethroughPlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false),
			commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip)),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(true))))
	conv.Register.TextTransformer(func(_ converter.Context, text string) string {
		return unescaped.Replace(text)
	}, converter.PriorityLate)
	for tag, rewrite := range map[string]func(n *html.Node, content string) string{
		"dt": func(_ *html.Node, content string) string { return "\n\n" + content + "\n" },
		"dd": func(_ *html.Node, content string) string {
			return "\n: " + strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n  ") + "\n\n"
		},
		"td": escapePipes, "th": escapePipes,
	} {
		conv.Register.RendererFor(tag, converter.TagTypeBlock, rewritten(rewrite), converter.PriorityStandard)
	}
	return conv
}

// rewritten renders an element as the result of rewrite on its content.
func rewritten(rewrite func(n *html.Node, content string) string) converter.HandleRenderFunc {
	return func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		var b strings.Builder
		ctx.RenderChildNodes(ctx, &b, n)
		_, _ = w.WriteString(rewrite(n, b.String())) // writing to memory does not fail
		return converter.RenderSuccess
	}
}

// escapePipes marks the pipes in a cell. The converter escapes them if it writes a table.
func escapePipes(_ *html.Node, content string) string { return pipes.Replace(content) }

var pipes = strings.NewReplacer(escaped+"|", escaped+"|", "|", escaped+"|")

// isNoise are elements that are not part of a page's text.
var isNoise = setOf(`script style template svg button select canvas noscript noembed noframes datalist iframe
	rt rp annotation annotation-xml`)

// isUnseen reports whether a reader does not see an element, because it is noise or hidden by its own attributes. The
// page itself never counts as hidden, because its script shows it.
func isUnseen(tag string, attributes []html.Attribute) bool {
	if isNoise[tag] {
		return true
	}
	isOpen := tag != "dialog"
	for _, a := range attributes {
		if tag != "html" && tag != "body" && (a.Key == "hidden" || a.Key == "style" && isHiding(a.Val)) {
			return true
		}
		isOpen = isOpen || a.Key == "open"
	}
	return !isOpen
}

func isHiding(style string) bool {
	return hiding.MatchString(styleComments.ReplaceAllString(style, ""))
}

var (
	hiding        = regexp.MustCompile(`(?i)(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b`)
	styleComments = regexp.MustCompile(`(?s)/\*.*?\*/`)
)

// isNavigation reports whether an element leads to other pages, by its tag, its role, or the classes of DocBook.
func isNavigation(n *html.Node) bool {
	if n.DataAtom == atom.Nav || attribute(n, "role") == "navigation" {
		return true
	}
	return slices.ContainsFunc(strings.Fields(attribute(n, "class")), func(class string) bool {
		return class == "navheader" || class == "navfooter"
	})
}

// dropInvisible removes what a reader does not see. It also removes navigation, unless nothing else would be left.
func dropInvisible(doc *html.Node, omitted *omissions) {
	styles := stylesheetOf(doc)
	remove(doc, func(n *html.Node) bool {
		if !isUnseen(n.Data, n.Attr) && !styles.hides(n) {
			return false
		}
		omitFrom(n, omitted)
		return true
	})
	isText := func(n *html.Node) bool {
		return n.Type == html.TextNode && strings.TrimSpace(n.Data) != ""
	}
	if body := find(doc, is(atom.Body), nil); body != nil && find(body, isText, isNavigation) != nil {
		remove(doc, func(n *html.Node) bool {
			if isNavigation(n) {
				omitted.add("navigation")
			}
			return isNavigation(n)
		})
	}
}

// omitMedia notes pictures without an alternative text, sound and video. Of a picture whose bytes stand in the page
// only the alternative text is kept.
func omitMedia(doc *html.Node, omitted *omissions) {
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Img:
			omitPicture(n, omitted)
		case atom.Audio, atom.Video:
			omitted.add(media)
		case atom.Object:
			omitObject(n, omitted)
		case atom.Embed:
			omitted.add("embedded page")
		}
	}
}

// omitPicture notes a picture, and leaves a mark behind it if OCR will read it.
func omitPicture(n *html.Node, omitted *omissions) {
	source := strings.TrimSpace(attribute(n, "src"))
	if source == "" {
		return
	}
	alternative := onOneLine(attribute(n, "alt"))
	mark := omitted.picture(omitted.html.part(source), alternative != "")
	if strings.HasPrefix(strings.ToLower(source), "data:") {
		becomeText(n, pictureText(alternative))
	}
	if mark != "" {
		n.Parent.InsertBefore(textNode(mark), n.NextSibling)
	}
}

// omitObject notes an object. What a page has for readers who do not see the object stays.
func omitObject(n *html.Node, omitted *omissions) {
	kind, _, _ := strings.Cut(strings.ToLower(attribute(n, "type")), "/")
	within := strings.TrimSpace(textOf(n))
	switch hasMore := find(n, is(atom.Object), nil) != nil || find(n, is(atom.Img), nil) != nil; {
	case attribute(n, "data") == "" && attribute(n, "classid") == "":
	case kind == "audio" || kind == "video":
		omitted.add(media)
	case kind != "image":
		omitted.add("embedded page")
	case within == "" && !hasMore:
		omitted.add(picture)
	}
	n.DataAtom, n.Data = atom.Div, "div"
}

// omitFrom notes what a reader of a page may miss of an element that is removed.
func omitFrom(n *html.Node, omitted *omissions) {
	switch {
	case n.Data == "rt":
		omitted.add(phoneticGuide)
	case n.Data == "svg" || n.Data == "canvas":
		omitted.add(picture)
	case n.Data == "iframe":
		if !strings.HasPrefix(attribute(n, "src"), "cid:") { // that is a part of the mail, which is read
			omitted.add("embedded page")
		}
	case n.Data == "noscript" && !isBlank(stripTags(textOf(n))):
		omitted.add(hiddenText)
	case !isNoise[n.Data] && strings.TrimSpace(textOf(n)) != "":
		omitted.add(hiddenText)
	}
}

// remove removes the elements for which fits is true from a tree.
func remove(n *html.Node, fits func(*html.Node) bool) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode && fits(child) {
			n.RemoveChild(child)
		} else {
			remove(child, fits)
		}
		child = next
	}
}

// addTitle adds the page's title as a heading before its text. If a first-level heading has the same text, nothing is
// added. If the first lower heading has it and there is no first-level heading, that heading becomes first-level.
func addTitle(doc *html.Node) {
	body, title := find(doc, is(atom.Body), nil), find(doc, is(atom.Title), nil)
	if body == nil || title == nil || title.FirstChild == nil {
		return
	}
	text := onOneLine(title.FirstChild.Data)
	isTitle := func(n *html.Node) bool { return n.DataAtom == atom.H1 && onOneLine(textOf(n)) == text }
	if text == "" || find(body, isTitle, nil) != nil {
		return
	}
	first := find(body, isLowerHeading, nil)
	if first != nil && onOneLine(textOf(first)) == text && find(body, is(atom.H1), nil) == nil {
		first.DataAtom, first.Data = atom.H1, "h1"
		return
	}
	heading := &html.Node{Type: html.ElementNode, DataAtom: atom.H1, Data: "h1"}
	heading.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	body.InsertBefore(heading, body.FirstChild)
}

func isLowerHeading(n *html.Node) bool { return lowerHeadings[n.DataAtom.String()] }

var lowerHeadings = setOf("h2 h3 h4 h5 h6")
