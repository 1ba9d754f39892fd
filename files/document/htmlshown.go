package document

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// showSpecial writes as text what a page shows by elements of its own: words in drawings, formulas, what an
// abbreviation stands for, and struck text in code.
func showSpecial(doc *html.Node) {
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "svg":
			showDrawing(n)
		case n.Data == "abbr":
			title := onOneLine(attribute(n, "title"))
			if title != "" && !strings.Contains(onOneLine(textOf(n)), title) {
				n.AppendChild(textNode(" (" + title + ")"))
			}
		case n.Data == "pre":
			markStruck(n)
		case n.Data == "ol":
			splitList(n)
		case asBlock[n.Data] != 0:
			n.DataAtom = asBlock[n.Data]
			n.Data = n.DataAtom.String()
		case between[n.Data] != "":
			showFormula(n, between[n.Data])
		case n.Data == "msqrt":
			n.InsertBefore(textNode("√("), n.FirstChild)
			n.AppendChild(textNode(")"))
		}
	}
}

// asBlock maps elements that stand on lines of their own, which the converter does not know → such ones that it knows.
var asBlock = map[string]atom.Atom{"summary": atom.Div, "center": atom.Div, "search": atom.Div, "menu": atom.Ul,
	"dir": atom.Ul, "listing": atom.Pre, "xmp": atom.Pre}

// splitList begins a new list where the numbers of a list jump, run backwards, or get one more digit, because the
// converter counts on and writes 01 for 1 beside 10.
func splitList(list *html.Node) {
	var items []*html.Node
	for child := range list.ChildNodes() {
		if child.DataAtom == atom.Li {
			items = append(items, child)
		}
	}
	step, next := 1, listNumber(list, "start", 1)
	if slices.ContainsFunc(list.Attr, func(a html.Attribute) bool { return a.Key == "reversed" }) {
		step, next = -1, listNumber(list, "start", len(items))
	}
	current, counted := list, next
	for i, item := range items {
		next = listNumber(item, "value", next)
		if i == 0 && next != listNumber(list, "start", 1) {
			setStart(list, next)
		} else if i > 0 && (next != counted || len(strconv.Itoa(next)) != len(strconv.Itoa(counted-1))) {
			following := &html.Node{Type: html.ElementNode, DataAtom: atom.Ol, Data: "ol"}
			setStart(following, next)
			current.Parent.InsertBefore(following, current.NextSibling)
			current = following
		}
		if current != list {
			list.RemoveChild(item)
			current.AppendChild(item)
		}
		counted = next + 1
		next += step
	}
}

// listNumber returns the number in an attribute of a list or an item.
func listNumber(n *html.Node, name string, otherwise int) int {
	if found, err := strconv.Atoi(strings.TrimSpace(attribute(n, name))); err == nil {
		return found
	}
	return otherwise
}

// setStart sets the first number of a list.
func setStart(list *html.Node, n int) {
	list.Attr = slices.DeleteFunc(list.Attr, func(a html.Attribute) bool {
		return a.Key == "start" || a.Key == "reversed"
	})
	list.Attr = append(list.Attr, html.Attribute{Key: "start", Val: strconv.Itoa(n)})
}

func textNode(text string) *html.Node { return &html.Node{Type: html.TextNode, Data: text} }

// showDrawing makes a drawing show its title and its words.
func showDrawing(svg *html.Node) {
	var lines []string
	title, own := attribute(svg, "aria-label"), ""
	for n := range svg.Descendants() {
		switch {
		case n.Type != html.ElementNode || n.Parent.Data == "text":
		case n.Data == "text":
			if line := onOneLine(textOf(n)); line != "" {
				lines = append(lines, line)
			}
		case n.Data == "title" || n.Data == "desc":
			title = strings.TrimSpace(title + " " + textOf(n))
			if n.Parent == svg {
				own = title
			}
		}
	}
	if len(lines) > 0 {
		title = own // those of single shapes say little beside the words
	}
	if title = onOneLine(title); title != "" && !strings.Contains(strings.Join(lines, " "), title) {
		lines = append([]string{pictureText(title)}, lines...)
	}
	if len(lines) > 0 {
		becomeField(svg, strings.Join(lines, "\n"))
	}
}

// markStruck marks struck text in code, whose other marks are not shown.
func markStruck(pre *html.Node) {
	for n := range pre.Descendants() {
		if n.DataAtom == atom.Del || n.DataAtom == atom.S || n.DataAtom == atom.Strike {
			n.DataAtom, n.Data = atom.Span, "span"
			n.InsertBefore(textNode("~~"), n.FirstChild)
			n.AppendChild(textNode("~~"))
		}
	}
}

// between maps elements of MathML → what stands between their two parts.
var between = map[string]string{"mfrac": "/", "msup": "^", "msub": "_"}

// showFormula writes the two parts of a formula on one line.
func showFormula(n *html.Node, sign string) {
	var parts []*html.Node
	for child := range n.ChildNodes() {
		if child.Type == html.ElementNode {
			parts = append(parts, child)
		}
	}
	if len(parts) != 2 {
		return
	}
	for _, part := range parts {
		if !isOneTerm(onOneLine(textOf(part))) {
			part.InsertBefore(textNode("("), part.FirstChild)
			part.AppendChild(textNode(")"))
		}
	}
	n.InsertBefore(textNode(sign), parts[1])
}

// following returns the text directly behind an element, as far as it is known.
func following(n *html.Node) string {
	for n.NextSibling == nil {
		if n = n.Parent; n == nil || !isFormatting[n.Data] && !isInline[n.Data] {
			return ""
		}
	}
	if n.NextSibling.Type == html.ElementNode {
		return textOf(n.NextSibling)
	}
	return n.NextSibling.Data
}

// becomeField makes an element show only the value of a field, apart from what stands beside it.
func becomeField(n *html.Node, value string) {
	becomeText(n, value)
	if value != "" {
		n.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, n.FirstChild)
		n.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
	}
}

// becomeText makes an element show only a text, with the lines of that text.
func becomeText(n *html.Node, text string) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	n.DataAtom, n.Data = atom.Span, "span"
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i > 0 {
			n.AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Br, Data: "br"})
		}
		n.AppendChild(&html.Node{Type: html.TextNode, Data: line})
	}
}
