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

	parent       string // the key of the style that it inherits from
	name         string // in lower case; empty for OpenDocument
	outline      int    // 1 for the highest heading, 0 for none
	list         listPlace
	title, quote bool
	newPage      bool // whether it begins a page
}

// blockStyles are those of a document: by id in Word, by family and name, as "paragraph/Title", in OpenDocument.
type blockStyles map[string]blockStyle

// maxStyles is how many styles a style inherits from, one through the other.
const maxStyles = 20

// whole returns a style with what it inherits.
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

// own returns a style without those that it inherits. In place of an absent style, OpenDocument has what programs mean
// by the name, and Word the plain one.
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
