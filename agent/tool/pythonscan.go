package tool

import (
	"fmt"
	"strings"
)

// maxAnnotationBytes bounds the type annotation of a parameter.
const maxAnnotationBytes = 2000

// pythonParam is a parameter of a Python function.
type pythonParam struct {
	name, annotation string
	optional         bool // it has a default value
}

// scanPython returns code, a copy of the source of the same length with blanked strings and comments, and the strings
// by the offset where each begins.
func scanPython(source string) (code string, strs map[int]string, err error) {
	blank := []byte(source)
	strs = map[int]string{}
	for i := 0; i < len(source); {
		switch source[i] {
		case '#':
			for i < len(source) && source[i] != '\n' {
				blank[i] = ' '
				i++
			}
		case '"', '\'':
			quote := source[i : i+1]
			if triple := strings.Repeat(quote, 3); strings.HasPrefix(source[i:], triple) {
				quote = triple
			}
			end := stringEnd(source, i, quote)
			if end < 0 {
				return "", nil, fmt.Errorf("the source has a string that is not closed, in line %d",
					strings.Count(source[:i], "\n")+1)
			}
			raw := i > 0 && strings.ContainsRune("rR", rune(source[i-1]))
			strs[i] = unquoted(source[i+len(quote):end-len(quote)], raw)
			for ; i < end; i++ {
				if blank[i] != '\n' {
					blank[i] = '_' // a string becomes a name, because both are values
				}
			}
		default:
			i++
		}
	}
	return string(blank), strs, nil
}

// stringEnd returns the offset where the string that begins at the given offset ends; -1 if it does not end.
func stringEnd(source string, start int, quote string) int {
	for i := start + len(quote); i < len(source); i++ {
		switch {
		case source[i] == '\\':
			i++
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote)
		case source[i] == '\n' && len(quote) == 1:
			return -1
		}
	}
	return -1
}

// unquoted returns the text of a string literal. It resolves only the escapes that occur in docstrings.
func unquoted(text string, raw bool) string {
	if raw {
		return text
	}
	return strings.NewReplacer("\\\n", "", `\\`, `\`, `\n`, "\n", `\t`, "    ", `\"`, `"`, `\'`, "'").Replace(text)
}

// matching returns the offset of the bracket that closes the one at the offset open; -1 if there is none.
func matching(code string, open int) int {
	depth := 0
	for i := open; i < len(code); i++ {
		switch code[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// pythonPart is a part of a source (text), together with the same part with blanked strings and comments (code).
type pythonPart struct{ text, code string }

// withoutComments returns the text of a part on one line. A place where the code is blank and the text is not, is a
// comment.
func withoutComments(p pythonPart) string {
	text := []byte(p.text)
	for i := range text {
		if p.code[i] == ' ' || p.code[i] == '\n' {
			text[i] = ' '
		}
	}
	return strings.TrimSpace(string(text))
}

// splitTop splits a source at each separator outside all brackets.
func splitTop(text, code string, separator byte) (parts []pythonPart) {
	depth, from := 0, 0
	for i := range len(code) {
		switch c := code[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == separator && depth == 0:
			parts = append(parts, pythonPart{text[from:i], code[from:i]})
			from = i + 1
		}
	}
	return append(parts, pythonPart{text[from:], code[from:]})
}
