package document

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of pages that are laid out. A page beyond them is an attack, or so large that only its text matters.
const (
	maxElements    = 1_000_000
	maxCells       = 1_000_000 // in all tables, with spans filled
	maxIndents     = 16        // nested lists and quotations; each repeats its mark on every line
	maxUnclosed    = 8         // open formatting elements at a tag, on average; each paragraph opens them again
	unclosedAllows = 100_000
)

// isInBounds reports, before a page is parsed, whether the size of its tree will be in proportion to the page.
func isInBounds(raw string) bool {
	tokens := html.NewTokenizer(strings.NewReader(raw))
	elements, open, reopened := 0, 0, 0
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return true
		case html.StartTagToken:
			elements++
			reopened += open
			if name, _ := tokens.TagName(); isFormatting[string(name)] {
				open++
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); isFormatting[string(name)] {
				open = max(0, open-1)
			}
		}
		if elements > maxElements || reopened > maxUnclosed*elements+unclosedAllows {
			return false
		}
	}
}

// isOutOfProportion reports whether the Markdown of a node would be too large. indents is how many lists and quotations
// are around the node; cells counts the table cells so far.
func isOutOfProportion(n *html.Node, indents int, cells *int) bool {
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Blockquote, atom.Dl, atom.Dd:
		indents++
	case atom.Table:
		*cells += tableCells(n)
	}
	if indents > maxIndents || *cells > maxCells {
		return true
	}
	for child := range n.ChildNodes() {
		if isOutOfProportion(child, indents, cells) {
			return true
		}
	}
	return false
}

// tableCells returns how many cells a table has if each row is as wide as the widest, and spans are filled.
func tableCells(table *html.Node) int {
	rows, widest, spanned := 0, 0, 0
	for n := range table.Descendants() {
		if n.DataAtom != atom.Tr {
			continue
		}
		rows++
		width := 0
		for cell := range n.ChildNodes() {
			columns, lines := span(cell, "colspan"), span(cell, "rowspan")
			width += columns
			spanned = min(spanned+columns*lines, maxCells+1)
			rows = min(max(rows, lines), maxCells+1)
		}
		widest = max(widest, min(width, maxCells+1))
	}
	return rows*widest + spanned
}

func span(cell *html.Node, key string) int {
	n, err := strconv.Atoi(attribute(cell, key))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, maxCells+1)
}

// stripTags returns the text of a page that a reader sees, without layout. Blocks become lines.
func stripTags(raw string) string {
	tokens := html.NewTokenizer(strings.NewReader(raw))
	var b strings.Builder
	var unseen skipped
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return stripped(b.String())
		case html.TextToken:
			if unseen.depth == 0 {
				b.Write(tokens.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			tag := tokens.Token()
			unseen.pass(tag)
			b.WriteString(separator(tag.Data))
			if tag.Data == "input" && unseen.depth == 0 && !isUnseen(tag.Data, tag.Attr) {
				b.WriteString(inputValue(tag.Attr))
			}
		}
	}
}

// skipped is an element with text to leave out. depth counts how many elements with this tag are open; 0 means that
// nothing is skipped.
type skipped struct {
	tag   string
	depth int
}

// pass counts a tag. A paragraph ends where the next one begins.
func (s *skipped) pass(tag html.Token) {
	switch starts := tag.Type != html.EndTagToken; {
	case s.depth > 0 && tag.Data == s.tag && !starts:
		s.depth--
	case s.depth > 0 && tag.Data == s.tag && s.tag != "p":
		s.depth++
	case starts && (s.depth == 0 || tag.Data == s.tag) && !isVoid[tag.Data]:
		*s = skipped{tag: tag.Data}
		if tag.Data == "title" || isUnseen(tag.Data, tag.Attr) {
			s.depth = 1
		}
	}
}

// isVoid are elements without an end tag and without text.
var isVoid = setOf("area base br col embed hr img input link meta param source track wbr")

// stripped drops the blanks around each line, and reduces several empty lines in a row to one.
func stripped(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	if text = tidyLines(strings.Join(lines, "\n")); text == "" {
		return ""
	}
	return strings.ReplaceAll(text, "\x00", "\ufffd") + "\n"
}

// separator returns what a tag puts between texts: a blank for a cell, nothing for formatting, a line end for others.
func separator(tag string) string {
	switch {
	case tag == "td" || tag == "th":
		return " "
	case isFormatting[tag] || isInline[tag]:
		return ""
	}
	return "\n"
}
