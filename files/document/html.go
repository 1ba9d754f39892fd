package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// HTML returns a page as Markdown: headings, lists, tables, code and links; without scripts, styles, forms and what leads to other pages,
// unless that is all there is. A page without a first-level heading gets its title as one. A page too wild to be laid out (deeper than
// 500 elements, tables of more than a million cells, more than a million elements) comes as plain text. Time and space are linear.
func HTML(raw string) (markdown string, err error) {
	if !isTame(raw) {
		return stripTags(raw), nil
	}
	doc, err := html.Parse(strings.NewReader(raw))
	if err != nil {
		return stripTags(raw), nil //nolint:nilerr // what cannot be laid out is read as text
	}
	if isWild(doc) {
		return stripTags(raw), nil
	}
	prune(doc)
	addTitle(doc)
	if markdown, err = toMarkdown(doc); err != nil {
		return stripTags(raw), nil //nolint:nilerr // as above
	}
	return plainCharacters.Replace(markdown), nil
}

// plainCharacters are written as a search has them.
var plainCharacters = strings.NewReplacer("\x00", "\ufffd", "\u00a0", " ")

// unescaped undoes what the converter does to each text: identifiers and operators are to be found as the page shows them.
var unescaped = strings.NewReplacer("&lt;", "<", "&gt;", ">")

// toMarkdown survives a panic of the converter on a page it does not expect.
func toMarkdown(doc *html.Node) (markdown string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("convert HTML: %v", p)
		}
	}()
	conv := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false),
			commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip)),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true)),
		strikethrough.NewStrikethroughPlugin()))
	conv.Register.TextTransformer(func(_ converter.Context, text string) string { return unescaped.Replace(text) }, converter.PriorityLate)
	conv.Register.RendererFor("dt", converter.TagTypeBlock, renderTerm, converter.PriorityStandard)
	conv.Register.RendererFor("dd", converter.TagTypeBlock, renderDefinition, converter.PriorityStandard)
	out, err := conv.ConvertNode(doc)
	if err != nil || len(out) == 0 {
		return "", err
	}
	return string(out) + "\n", nil
}

// renderTerm and renderDefinition write a definition list as Markdown has it by custom: a term, then ": " before each definition.
func renderTerm(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	_, _ = w.WriteString("\n\n")
	ctx.RenderChildNodes(ctx, w, n)
	_, _ = w.WriteString("\n")
	return converter.RenderSuccess
}

func renderDefinition(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var b strings.Builder
	ctx.RenderChildNodes(ctx, &b, n)
	_, _ = w.WriteString("\n: " + strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", "\n  ") + "\n\n")
	return converter.RenderSuccess
}

// isNoise tells the elements that are not the page's text.
func isNoise(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Svg, atom.Button, atom.Select, atom.Object, atom.Embed, atom.Canvas:
		return true
	}
	return false
}

// isNavigation tells the elements that lead to other pages: by tag, by role, and by the classes that manuals made with DocBook use.
func isNavigation(n *html.Node) bool {
	if n.DataAtom == atom.Nav || attribute(n, "role") == "navigation" {
		return true
	}
	return slices.ContainsFunc(strings.Fields(attribute(n, "class")), func(class string) bool {
		return class == "navheader" || class == "navfooter"
	})
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// prune takes out the noise, and the navigation unless nothing else is left.
func prune(doc *html.Node) {
	remove(doc, isNoise)
	isText := func(n *html.Node) bool {
		return n.Type == html.TextNode && strings.TrimSpace(n.Data) != ""
	}
	if body := find(doc, func(n *html.Node) bool { return n.DataAtom == atom.Body }, nil); body != nil && find(body, isText, isNavigation) != nil {
		remove(doc, isNavigation)
	}
}

// remove takes the elements that fit out of a tree.
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

// find is the first node that fits, in document order, not looking into what is passed over.
func find(n *html.Node, fits, passOver func(*html.Node) bool) *html.Node {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if passOver != nil && passOver(child) {
			continue
		}
		if fits(child) {
			return child
		}
		if found := find(child, fits, passOver); found != nil {
			return found
		}
	}
	return nil
}

// addTitle puts the page's title before its text, as a heading, if the text has no first-level heading. A heading that says the same
// becomes that heading instead.
func addTitle(doc *html.Node) {
	is := func(a atom.Atom) func(*html.Node) bool { return func(n *html.Node) bool { return n.DataAtom == a } }
	body, title := find(doc, is(atom.Body), nil), find(doc, is(atom.Title), nil)
	if body == nil || title == nil || title.FirstChild == nil || find(body, is(atom.H1), nil) != nil {
		return
	}
	text := strings.Join(strings.Fields(title.FirstChild.Data), " ")
	if text == "" {
		return
	}
	if first := find(body, isHeading, nil); first != nil && strings.Join(strings.Fields(textOf(first)), " ") == text {
		first.DataAtom, first.Data = atom.H1, "h1"
		return
	}
	heading := &html.Node{Type: html.ElementNode, DataAtom: atom.H1, Data: "h1"}
	heading.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	body.InsertBefore(heading, body.FirstChild)
}

func isHeading(n *html.Node) bool {
	switch n.DataAtom {
	case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
