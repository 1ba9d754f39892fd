package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// pythonModel is a class of pydantic's kind, BaseModel: an object with typed fields.
type pythonModel struct {
	fields []pythonParam
	about  map[string]string // field → its description
}

// pythonModels maps the name of a class of a source to the class.
type pythonModels map[string]pythonModel

// Bounds of the classes that are read: their number, and the JSON schema of a class with the classes that it contains.
const (
	maxModels           = 50
	maxModelSchemaBytes = 64 << 10
)

// classHead matches the head of a class at the beginning of a line, with its bases.
var classHead = regexp.MustCompile(`(?m)^class[ \t]+([A-Za-z_]\w*)[ \t]*\(([^()]*)\)[ \t]*:`)

// fieldHead matches the beginning of a statement that declares a field with a type.
var fieldHead = regexp.MustCompile(`^[A-Za-z_]\w*[ \t]*:`)

// readModels reads the classes of a source that derive from BaseModel. code is the source with blanked strings and
// comments. At most maxModels classes are read.
func readModels(source, code string) pythonModels {
	models := pythonModels{}
	for _, at := range classHead.FindAllStringSubmatchIndex(code, maxModels) {
		m := pythonModel{about: map[string]string{}}
		derives := false
		for base := range strings.SplitSeq(code[at[4]:at[5]], ",") {
			base = strings.TrimSpace(base[strings.LastIndexByte(base, '.')+1:])
			from, isModel := models[base]
			derives = derives || isModel || base == "BaseModel"
			m.fields = append(m.fields, from.fields...)
			maps.Copy(m.about, from.about)
		}
		if derives {
			m.readFields(classBody(source[at[1]:], code[at[1]:]))
			models[code[at[2]:at[3]]] = m
		}
	}
	return models
}

// classBody returns the body of a class, which ends before the next line without indentation.
func classBody(source, code string) pythonPart {
	end, depth := 0, 0
	for line := range strings.Lines(code) {
		if end > 0 && depth == 0 && strings.TrimSpace(line) != "" && indent(line) == 0 {
			break
		}
		for _, c := range line {
			switch {
			case strings.ContainsRune("([{", c):
				depth++
			case strings.ContainsRune(")]}", c):
				depth--
			}
		}
		end += len(line)
	}
	return pythonPart{source[:end], code[:end]}
}

// readFields adds the fields that the body of a class declares. A field replaces an inherited one of its name.
func (m *pythonModel) readFields(body pythonPart) {
	outer := -1 // indentation of the body's statements
	for _, statement := range splitTop(body.text, body.code, '\n') {
		code := strings.TrimLeft(statement.code, " ")
		if strings.TrimSpace(code) == "" {
			continue
		}
		if outer < 0 {
			outer = indent(statement.code)
		}
		if indent(statement.code) != outer || !fieldHead.MatchString(code) {
			continue // of a method, or no field
		}
		declared := splitTop(statement.text, statement.code, '=')
		halves := splitTop(declared[0].text, declared[0].code, ':')
		p := pythonParam{name: strings.TrimSpace(halves[0].code), annotation: withoutComments(halves[1])}
		if p.name == "model_config" || strings.HasPrefix(p.annotation, "ClassVar") || len(halves) != 2 ||
			len(p.annotation) > maxAnnotationBytes {
			continue
		}
		if len(declared) > 1 {
			value := pythonPart{statement.text[len(declared[0].text)+1:], statement.code[len(declared[0].code)+1:]}
			p.optional, m.about[p.name] = fieldDefault(value)
		}
		m.fields = append(slices.DeleteFunc(m.fields, func(f pythonParam) bool { return f.name == p.name }), p)
	}
}

// fieldDefault reads what a field of a class is set to: whether it has a default, and its description if it is a Field.
func fieldDefault(value pythonPart) (optional bool, about string) {
	open := strings.IndexByte(value.code, '(')
	if open < 0 || strings.TrimSpace(value.code[:open]) != "Field" {
		return strings.TrimSpace(value.code) != "...", ""
	}
	closing := matching(value.code, open)
	if closing < 0 {
		return true, ""
	}
	for i, argument := range splitTop(value.text[open+1:closing], value.code[open+1:closing], ',') {
		halves := splitTop(argument.text, argument.code, '=')
		switch name := strings.TrimSpace(halves[0].code); {
		case len(halves) == 1 && i == 0:
			optional = name != "..." && name != ""
		case len(halves) == 1:
		case name == "default" || name == "default_factory":
			optional = strings.TrimSpace(halves[1].code) != "..."
		case name == "description":
			about = textOf(argument.text[len(halves[0].text)+1:])
		}
	}
	return optional, about
}

// textOf returns the text of string literals that stand one after the other.
func textOf(source string) string {
	_, strs, err := scanPython(source)
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, at := range slices.Sorted(maps.Keys(strs)) {
		text.WriteString(strs[at])
	}
	return text.String()
}

// schema returns the JSON schema of a class. A class that contains itself has none.
func (m pythonModels) schema(name string) (map[string]any, error) {
	rest := maps.Clone(m)
	delete(rest, name)
	properties, required, err := rest.properties("field", name, m[name].fields, m[name].about)
	if len(properties) > maxModelSchemaBytes {
		return nil, fmt.Errorf("the schema of the class %s has %d bytes; at most %d are read", name, len(properties),
			maxModelSchemaBytes)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}, err
}

// properties returns the JSON schemas of parameters or fields, which kind says, as an object, and the names of those
// that must be given. owner is the function or the class.
func (m pythonModels) properties(kind, owner string, params []pythonParam, about map[string]string) (json.RawMessage,
	[]string, error) {
	var properties strings.Builder
	required := []string{}
	for i, p := range params {
		schema, nullable, err := m.typeSchema(p.annotation)
		if err != nil {
			return nil, nil, fmt.Errorf("the type %s of the %s %s of %s cannot be read: %w", echo(p.annotation), kind, p.name,
				owner, err)
		}
		if text := about[p.name]; text != "" {
			schema["description"] = text
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			properties.WriteString(",")
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(&properties, "%s:%s", name, raw)
		if !p.optional && !nullable {
			required = append(required, p.name)
		}
	}
	return json.RawMessage("{" + properties.String() + "}"), required, nil
}
