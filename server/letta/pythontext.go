package letta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// pythonText returns JSON as Python writes the value that it stands for: Letta lists results of tools that are no texts
// so. It returns what is no JSON unchanged.
func pythonText(raw string) string {
	read := json.NewDecoder(strings.NewReader(raw))
	read.UseNumber()
	var out bytes.Buffer
	if !json.Valid([]byte(raw)) || writePython(&out, read) != nil {
		return raw
	}
	return out.String()
}

// writePython writes the next value.
func writePython(out *bytes.Buffer, read *json.Decoder) error {
	token, err := read.Token()
	if err != nil {
		return err
	}
	switch value := token.(type) {
	case json.Delim:
		return writePythonItems(out, read, value)
	case string:
		out.WriteString(pythonString(value))
	case bool:
		out.WriteString(map[bool]string{true: "True", false: "False"}[value])
	case nil:
		out.WriteString("None")
	default:
		fmt.Fprint(out, value)
	}
	return nil
}

// writePythonItems writes the items of a list or an object, which has begun.
func writePythonItems(out *bytes.Buffer, read *json.Decoder, begin json.Delim) error {
	out.WriteString(begin.String())
	for n := 0; read.More(); n++ {
		if n > 0 {
			out.WriteString(", ")
		}
		if begin == '{' {
			name, err := read.Token()
			if err != nil {
				return err
			}
			out.WriteString(pythonString(name.(string)) + ": ")
		}
		if err := writePython(out, read); err != nil {
			return err
		}
	}
	_, err := read.Token()
	out.WriteString(map[json.Delim]string{'{': "}", '[': "]"}[begin])
	return err
}

// pythonString returns a text as Python writes it: in single quotes, unless it has such and no double ones.
func pythonString(text string) string {
	quote := `'`
	if strings.Contains(text, `'`) && !strings.Contains(text, `"`) {
		quote = `"`
	}
	var b strings.Builder
	b.WriteString(quote)
	for _, r := range text {
		switch {
		case string(r) == quote || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteString(quote)
	return b.String()
}
