package document

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Elements that stand within a line.
var isFormatting = setOf("a b big code em font i nobr s small strike strong tt u")
var isInline = setOf("span sub sup abbr kbd img mark label input")

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// find returns the first node, in document order, for which fits is true. It skips nodes within those for which
// passOver is true. It returns nil if there is none.
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

func is(a atom.Atom) func(*html.Node) bool { return func(n *html.Node) bool { return n.DataAtom == a } }

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
