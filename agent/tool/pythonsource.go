package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Signature is what a model needs to know of a Python function. Parameters is a JSON schema.
type Signature struct {
	Name        string
	Description string // of the docstring, without its sections; empty without one
	Parameters  json.RawMessage
}

// maxAnnotationBytes bounds the type of a parameter.
const maxAnnotationBytes = 2000

// pythonParam is a parameter of a Python function.
type pythonParam struct {
	name, annotation string
	optional         bool // it has a default
}

// injected are the parameters that Letta's server fills in; a model does not see them.
var injected = map[string]bool{"self": true, "agent_state": true, "client": true}

// functionHead matches the head of a function that stands at the beginning of a line.
var functionHead = regexp.MustCompile(`^(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)[ \t]*\(`)

// ReadSignature reads the last function of a Python source that stands at the beginning of a line: its parameters with
// their types, unless the caller has them already, and its docstring in the style of Google, numpy or Sphinx. Its error
// is a sentence for the caller.
func ReadSignature(source string, hasParameters bool) (Signature, error) {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\t", "    ")
	code, strs, err := scanPython(source)
	if err != nil {
		return Signature{}, err
	}
	at := lastFunction(code)
	if at < 0 {
		return Signature{}, fmt.Errorf("the source has no function that begins a line with def")
	}
	head := functionHead.FindStringSubmatch(code[at:])
	open := at + len(head[0]) - 1
	closing := matching(code, open)
	body := bodyStart(code, closing)
	if closing < 0 || body < 0 {
		return Signature{}, fmt.Errorf("the function %s is cut: its parentheses are not closed, or it has no body", head[1])
	}
	doc := readDocstring(docstring(code, strs, body))
	s := Signature{Name: head[1], Description: doc.summary}
	if hasParameters {
		return s, nil
	}
	params, err := readParams(head[1], source[open+1:closing], code[open+1:closing])
	if err != nil {
		return Signature{}, err
	}
	s.Parameters, err = parametersOf(s.Name, params, doc.arguments)
	return s, err
}

// scanPython returns a source with its strings and comments blanked, of the same length, and the strings by where they
// begin.
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
					blank[i] = '_' // a string is a value, as a name is
				}
			}
		default:
			i++
		}
	}
	return string(blank), strs, nil
}

// stringEnd returns where the string that begins at a place ends, -1 if it does not.
func stringEnd(source string, at int, quote string) int {
	for i := at + len(quote); i < len(source); i++ {
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

// unquoted returns the text of a string literal. It reads the escapes that docstrings have.
func unquoted(text string, raw bool) string {
	if raw {
		return text
	}
	return strings.NewReplacer("\\\n", "", `\\`, `\`, `\n`, "\n", `\t`, "    ", `\"`, `"`, `\'`, "'").Replace(text)
}

// lastFunction returns where the last function at the beginning of a line begins, -1 without one.
func lastFunction(code string) int {
	found, at := -1, 0
	for line := range strings.Lines(code) {
		if functionHead.MatchString(code[at:]) {
			found = at
		}
		at += len(line)
	}
	return found
}

// matching returns where the bracket that opens at a place closes, -1 if it does not.
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

// bodyStart returns where the body of a function begins whose parameters end at a place, -1 if it has none.
func bodyStart(code string, closing int) int {
	if closing < 0 {
		return -1
	}
	for i, depth := closing+1, 0; i < len(code); i++ {
		switch code[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ':':
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// docstring returns the string that is the first statement of a body; empty without one.
func docstring(code string, strs map[int]string, body int) string {
	first := body + len(code[body:]) - len(strings.TrimLeft(code[body:], " \n"))
	for _, at := range []int{first, first + 1} { // a string may have a prefix: r"..."
		if text, ok := strs[at]; ok && (at == first || strings.ContainsRune("rRuU", rune(code[first]))) {
			return dedented(text)
		}
	}
	return ""
}

// dedented returns a docstring without the indentation that its lines after the first share.
func dedented(text string) string {
	lines := strings.Split(text, "\n")
	least := -1
	for _, line := range lines[1:] {
		if strings.TrimSpace(line) != "" && (least < 0 || indent(line) < least) {
			least = indent(line)
		}
	}
	for i, line := range lines {
		if i > 0 && least > 0 {
			line = line[min(least, len(line)):]
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	lines[0] = strings.TrimLeft(lines[0], " ")
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// readParams reads the parameters of a function. code is their text with blanked strings and comments.
func readParams(function, text, code string) (params []pythonParam, err error) {
	for _, part := range splitTop(text, code, ',') {
		name := strings.TrimSpace(part.code)
		switch {
		case name == "" || name == "*" || name == "/":
			continue
		case strings.HasPrefix(name, "*"):
			return nil, fmt.Errorf("the function %s takes %s: a model is given each parameter by its name. Name them, or send "+
				"json_schema", function, name)
		}
		p := pythonParam{}
		declared := splitTop(part.text, part.code, '=')
		p.optional = len(declared) > 1
		halves := splitTop(declared[0].text, declared[0].code, ':')
		if p.name = strings.TrimSpace(halves[0].code); injected[p.name] {
			continue
		}
		if len(halves) > 1 {
			p.annotation = withoutComments(halves[1])
		}
		if len(p.annotation) > maxAnnotationBytes {
			return nil, fmt.Errorf("the type of the parameter %s of %s has %d bytes; at most %d are read. Send json_schema",
				p.name, function, len(p.annotation), maxAnnotationBytes)
		}
		if p.annotation == "" {
			return nil, fmt.Errorf("the parameter %s of %s has no type: write one, such as %s: str, or send json_schema",
				p.name, function, p.name)
		}
		params = append(params, p)
	}
	return params, nil
}

// pythonPart is a part of a source, also with its strings and comments blanked.
type pythonPart struct{ text, code string }

// withoutComments returns the text of a part on one line. Where the code is blank and the text is not, is a comment.
func withoutComments(p pythonPart) string {
	kept := []byte(p.text)
	for i := range kept {
		if p.code[i] == ' ' || p.code[i] == '\n' {
			kept[i] = ' '
		}
	}
	return strings.TrimSpace(string(kept))
}

// splitTop splits a source at a separator that stands in no bracket.
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
