package erase

import (
	"slices"
	"strings"
	"unicode"
)

// maxTag is the most characters of a tag that is read.
const maxTag = 2_000

// inlineTags are the tags of HTML within words and lines; other tags stand between words.
var inlineTags = []string{"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font",
	"i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
	"wbr"}

// untagged returns cells without the tags of HTML and XML, with a space for a tag between words; ok is false if there
// are none.
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

// tagAt reads a tag, and returns its name in lower case and how many cells it has; 0 if there is none.
func tagAt(cells []cell) (name string, n int) {
	if cells[0].r != '<' {
		return "", 0
	}
	at := 1
	if at < len(cells) && cells[at].r == '/' {
		at++
	}
	var b strings.Builder
	for ; at < len(cells) && isTagName(cells[at].r, b.Len() == 0) && b.Len() < maxTag; at++ {
		b.WriteRune(unicode.ToLower(cells[at].r))
	}
	if b.Len() == 0 || at == len(cells) || !unicode.IsSpace(cells[at].r) && cells[at].r != '/' && cells[at].r != '>' {
		return "", 0
	}
	for ; at < min(len(cells), maxTag) && cells[at].r != '<'; at++ {
		if cells[at].r == '>' {
			return b.String(), at + 1
		}
	}
	return "", 0
}

func isTagName(r rune, first bool) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return letter || !first && (r >= '0' && r <= '9' || r == ':' || r == '-')
}

// unmarked returns cells without the signs by which Markdown marks words, and of its links without all but their texts;
// ok is false if there are none. An underscore within a word is no sign.
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

// ofLinks reports which cells belong to links of Markdown and not to their texts: [text](target) and [text][name].
func ofLinks(cells []cell) []bool {
	of, open := make([]bool, len(cells)), []int{}
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
			of[begin] = true
			for k := i; k <= i+n; k++ {
				of[k] = true
			}
			i += n
		}
	}
	return of
}

// targetAt returns how many cells the target of a link has, with its brackets, at the beginning; 0 if there is none.
func targetAt(cells []cell) int {
	ends := map[rune]rune{'(': ')', '[': ']'}
	if len(cells) == 0 || ends[cells[0].r] == 0 {
		return 0
	}
	for i, depth := 0, 0; i < min(len(cells), maxTag); i++ {
		switch cells[i].r {
		case cells[0].r:
			depth++
		case ends[cells[0].r]:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
