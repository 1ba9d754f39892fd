package document

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// showForms puts the values of a page's form fields in their place: what is entered, what is selected, and boxes for
// what can be ticked.
func showForms(doc *html.Node) {
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Input:
			becomeField(n, inputValue(n.Attr))
		case atom.Select:
			becomeField(n, strings.Join(selectedIn(n), ", "))
		case atom.Textarea:
			becomeField(n, textOf(n))
		case atom.Legend:
			n.DataAtom, n.Data = atom.P, "p" // on a line of its own
		}
	}
}

// inputValue returns what a reader sees of a field that is an element without content.
func inputValue(attributes []html.Attribute) string {
	kind, value, ticked := "text", "", false
	for _, a := range attributes {
		switch a.Key {
		case "type":
			kind = strings.ToLower(strings.TrimSpace(a.Val))
		case "value":
			value = a.Val
		case "checked":
			ticked = true
		}
	}
	switch {
	case isUnseenInput[kind]:
		return ""
	case kind != "checkbox" && kind != "radio":
		return value
	case ticked:
		return "☒"
	}
	return "☐"
}

// isUnseenInput are the kinds of fields that do not show their value, or that are buttons.
var isUnseenInput = setOf("hidden password submit reset button image file")

// selectedIn returns the options of a list that are selected. A list of which only one can be shows its first one.
func selectedIn(list *html.Node) (texts []string) {
	first, several := "", attribute(list, "size") != "" && attribute(list, "size") != "1"
	for _, a := range list.Attr {
		several = several || a.Key == "multiple"
	}
	for n := range list.Descendants() {
		if n.DataAtom != atom.Option {
			continue
		}
		if first == "" {
			first = onOneLine(textOf(n))
		}
		for _, a := range n.Attr {
			if a.Key == "selected" {
				texts = append(texts, onOneLine(textOf(n)))
			}
		}
	}
	if len(texts) == 0 && !several && first != "" {
		return []string{first}
	}
	return texts
}

// showStyles marks what a page shows by style alone: raised numbers, and text that is struck through.
func showStyles(doc *html.Node) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		style := styleComments.ReplaceAllString(attribute(n, "style"), "")
		if n.DataAtom == atom.Sup || raising.MatchString(style) {
			raise(n)
		}
		if isWord[n.Data] && striking.MatchString(style) {
			n.DataAtom, n.Data = atom.Del, "del"
		}
	}
}

var (
	raising  = regexp.MustCompile(`(?i)(?:^|;)\s*vertical-align\s*:\s*super\b`)
	striking = regexp.MustCompile(`(?i)(?:^|;)\s*text-decoration(?:-line)?\s*:[^;]*\bline-through\b`)
)

// isWord are elements within a line whose only meaning may be their style.
var isWord = setOf("span font small big tt u ins")

// raise writes a raised number behind something else as 10^6. A raised link, as to a note, stays as it is.
func raise(n *html.Node) {
	text := strings.TrimSpace(textOf(n))
	if text == "" || !isExponent(text) || !follows(n) || find(n, is(atom.A), nil) != nil {
		return
	}
	becomeText(n, power(text, following(n)))
}

// follows reports whether a text stands directly before an element, in the same line.
func follows(n *html.Node) bool {
	for n.PrevSibling == nil {
		if n = n.Parent; n == nil || !isFormatting[n.Data] && !isInline[n.Data] && n.Data != "del" && n.Data != "var" {
			return false
		}
	}
	text := n.PrevSibling.Data
	if n.PrevSibling.Type == html.ElementNode {
		text = textOf(n.PrevSibling)
	}
	return strings.TrimRight(text, " \t\n\r\u00a0") == text && text != ""
}
