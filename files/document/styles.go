package document

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// blockStyle is a style of Word or OpenDocument, as far as Markdown keeps it.
type blockStyle struct {
	style

	parent       string // key of the style from which it inherits
	name         string // in lower case; empty for OpenDocument
	outline      int    // 1 for the highest heading, 0 for none
	list         listPlace
	title, quote bool
	newPage      bool // it begins a page
}

// blockStyles maps a document's styles: in Word by id; in OpenDocument by family and name, such as "paragraph/Title".
type blockStyles map[string]blockStyle

// maxStyles is the longest chain of styles that inherit from each other.
const maxStyles = 20

// whole returns a style with everything that it inherits.
func (all blockStyles) whole(key string) blockStyle {
	s := all.own(key)
	parent := s.parent
	for depth := 0; depth < maxStyles && parent != ""; depth++ {
		from := all.own(parent)
		s.style, s.title, s.quote = s.with(from.style), s.title || from.title, s.quote || from.quote
		s.outline, s.list = cmp.Or(s.outline, from.outline), cmp.Or(s.list, from.list)
		parent = from.parent
	}
	return s
}

// own returns a style without what it inherits. For an absent style, it returns what programs usually mean by the name
// in OpenDocument, and the plain style in Word.
func (all blockStyles) own(key string) blockStyle {
	if s, known := all[key]; known || !strings.Contains(key, "/") {
		return s
	}
	return namedStyle(path.Base(key))
}

func isCodeName(name string) bool { return slices.Contains(codeNames, name) }

var codeNames = []string{"source code", "source text", "verbatim char", "html preformatted", "html code",
	"preformatted text", "plain text", "macro text", "code", "code block", "inline code", "teletype"}

func isCodeFont(font string) bool {
	font = strings.ToLower(font)
	return codeFont.MatchString(font) && !strings.Contains(font, "monotype")
}

var codeFont = regexp.MustCompile(`courier|consolas|mono|menlo|monaco|source code`)

// namedStyle returns the style that programs usually mean by this name.
func namedStyle(name string) (s blockStyle) {
	name = strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_20_", " "), "_", " "))
	s.code, s.title, s.quote = isCodeName(name), name == "title", strings.HasPrefix(name, "quotation")
	return s
}
