package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Signature is what a model needs to know about a Python function. Parameters is a JSON schema.
type Signature struct {
	Name        string
	Description string // the docstring without its sections; empty if there is none
	Parameters  json.RawMessage
}

// injected lists the parameters that Letta's server fills in. A model does not see them.
var injected = map[string]bool{"self": true, "agent_state": true, "client": true}

// functionHead matches the head of a function at the beginning of a line.
var functionHead = regexp.MustCompile(`^(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)[ \t]*\(`)

// ReadSignature reads the last function of a Python source that begins at the beginning of a line. It reads the
// parameters with their types, unless the caller already has them, and the docstring in the style of Google, numpy or
// Sphinx. Its error is a sentence for the caller.
func ReadSignature(source string, hasParameters bool) (Signature, error) {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\t", "    ")
	code, strs, err := scanPython(source)
	if err != nil {
		return Signature{}, err
	}
	start := lastFunction(code)
	if start < 0 {
		return Signature{}, fmt.Errorf("the source has no function that begins a line with def")
	}
	head := functionHead.FindStringSubmatch(code[start:])
	open := start + len(head[0]) - 1
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
	s.Parameters, err = readModels(source, code).parametersOf(s.Name, params, doc.arguments)
	return s, err
}

// lastFunction returns the offset of the last function that begins at the beginning of a line; -1 if there is none.
func lastFunction(code string) int {
	found, offset := -1, 0
	for line := range strings.Lines(code) {
		if functionHead.MatchString(code[offset:]) {
			found = offset
		}
		offset += len(line)
	}
	return found
}

// bodyStart returns the offset of a function's body; -1 if it has none. closing is the offset at which the parameters
// end.
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

// docstring returns the string that is the first statement of a body; empty if there is none.
func docstring(code string, strs map[int]string, body int) string {
	first := body + len(code[body:]) - len(strings.TrimLeft(code[body:], " \n"))
	for _, start := range []int{first, first + 1} { // a string may have a prefix: r"..."
		if text, ok := strs[start]; ok && (start == first || strings.ContainsRune("rRuU", rune(code[first]))) {
			return dedented(text)
		}
	}
	return ""
}

// dedented removes from a docstring the indentation that all lines after the first share.
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

// readParams reads the parameters of a function. text is their source, and code the same source with blanked strings
// and comments.
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
