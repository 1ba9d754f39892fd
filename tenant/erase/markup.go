package erase

import (
	"slices"
	"strings"
	"unicode"
)

// maxTag is the maximum length of a tag.
const maxTag = 2_000

// inlineTags are the HTML tags that may stand within a word or line. Other tags separate words.
var inlineTags = []string{"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font",
	"i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
	"wbr"}

// untagged removes the tags of HTML and XML. A tag that separates words becomes a space. ok is false if there are none.
func untagged(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '<' }) {
		return cells, false
	}
	out = make([]cell, 0, len(cells))
	for i := 0; i < len(cells); {
		if cells[i].r != '<' {
			out = append(out, cells[i])
			i++
			continue
		}
		name, n := tagAt(cells[i:])
		if n == 0 {
			out = append(out, cells[i])
			i++
			continue
		}
		if !strings.Contains(name, ":") && !slices.Contains(inlineTags, name) {
			out = append(out, cell{' ', cells[i].from, cells[i+n-1].to})
		}
		i, ok = i+n, true
	}
	return out, ok
}

// tagAt reads a tag at the beginning. It returns the tag's name in lower case and its number of cells, or 0 cells if
// there is no tag.
func tagAt(cells []cell) (name string, n int) {
	if cells[0].r != '<' {
		return "", 0
	}
	i := 1
	if i < len(cells) && cells[i].r == '/' {
		i++
	}
	var b strings.Builder
	for ; i < len(cells) && isTagName(cells[i].r, b.Len() == 0) && b.Len() < maxTag; i++ {
		b.WriteRune(unicode.ToLower(cells[i].r))
	}
	if b.Len() == 0 || i == len(cells) || !unicode.IsSpace(cells[i].r) && cells[i].r != '/' && cells[i].r != '>' {
		return "", 0
	}
	for ; i < min(len(cells), maxTag) && cells[i].r != '<'; i++ {
		if cells[i].r == '>' {
			return b.String(), i + 1
		}
	}
	return "", 0
}

func isTagName(r rune, first bool) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return letter || !first && (r >= '0' && r <= '9' || r == ':' || r == '-')
}

// unmarked removes Markdown's signs around words. It reduces links to their texts, and keeps an underscore within a
// word. ok reports whether it removed anything.
func unmarked(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '*' || c.r == '`' || c.r == '_' || c.r == ']' }) {
		return cells, false
	}
	linked := ofLinks(cells)
	inWord := func(i int) bool {
		return i >= 0 && i < len(cells) && (unicode.IsLetter(cells[i].r) || unicode.IsDigit(cells[i].r))
	}
	out = make([]cell, 0, len(cells))
	for i, c := range cells {
		if linked[i] || c.r == '*' || c.r == '`' || c.r == '_' && (!inWord(i-1) || !inWord(i+1)) {
			ok = true
			continue
		}
		out = append(out, c)
	}
	return out, ok
}

// ofLinks reports for each cell whether it belongs to a Markdown link, [text](target) or [text][name], but not to the
// link's text.
func ofLinks(cells []cell) []bool {
	inLink, open := make([]bool, len(cells)), []int{}
	for i := 0; i < len(cells); i++ {
		switch n := 0; cells[i].r {
		case '[':
			open = append(open, i)
		case ']':
			if len(open) == 0 {
				continue
			}
			begin := open[len(open)-1]
			open = open[:len(open)-1]
			if n = targetAt(cells[i+1:]); n == 0 {
				continue
			}
			inLink[begin] = true
			for k := i; k <= i+n; k++ {
				inLink[k] = true
			}
			i += n
		}
	}
	return inLink
}

// targetAt returns the number of cells of a link target with its brackets at the beginning, or 0.
func targetAt(cells []cell) int {
	closing := map[rune]rune{'(': ')', '[': ']'}
	if len(cells) == 0 || closing[cells[0].r] == 0 {
		return 0
	}
	for i, depth := 0, 0; i < min(len(cells), maxTag); i++ {
		switch cells[i].r {
		case cells[0].r:
			depth++
		case closing[cells[0].r]:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
