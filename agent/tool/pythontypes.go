package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// parametersOf returns the JSON schema of parameters.
func (m pythonModels) parametersOf(function string, params []pythonParam, about map[string]string) (json.RawMessage,
	error) {
	properties, required, err := m.properties("parameter", function, params, about)
	if err != nil {
		return nil, fmt.Errorf("%w. Send json_schema or args_json_schema", err)
	}
	names, err := json.Marshal(required)
	return json.RawMessage(`{"type":"object","properties":` + string(properties) + `,"required":` + string(names) + `}`),
		err
}

// simpleTypes maps Python types to JSON types.
var simpleTypes = map[string]string{"str": "string", "int": "integer", "float": "number", "bool": "boolean",
	"list": "array", "List": "array", "dict": "object", "Dict": "object", "set": "array", "Set": "array",
	"Sequence": "array", "Iterable": "array", "tuple": "array", "Tuple": "array", "Mapping": "object",
	"datetime": "string", "date": "string", "None": "null", "Any": "", "object": ""}

// typeSchema returns the JSON schema of a Python type, and whether the value may be None.
func (m pythonModels) typeSchema(annotation string) (schema map[string]any, nullable bool, err error) {
	annotation = strings.TrimSpace(strings.Trim(strings.TrimSpace(annotation), `"'`))
	if options := splitAnnotation(annotation, '|'); len(options) > 1 {
		return m.unionSchema(options)
	}
	name, inner, generic := strings.Cut(annotation, "[")
	name = strings.TrimSpace(name[strings.LastIndexByte(name, '.')+1:])
	if generic && !strings.HasSuffix(inner, "]") {
		return nil, false, fmt.Errorf("its brackets do not match")
	}
	arguments := splitAnnotation(strings.TrimSuffix(inner, "]"), ',')
	switch {
	case generic && name == "Optional":
		return m.unionSchema(append(arguments, "None"))
	case generic && name == "Union":
		return m.unionSchema(arguments)
	case generic && name == "Annotated":
		return m.typeSchema(arguments[0])
	case generic && name == "Literal":
		return literalSchema(arguments)
	}
	if _, isModel := m[name]; isModel && !generic {
		schema, err = m.schema(name)
		return schema, false, err
	}
	kind, known := simpleTypes[name]
	switch {
	case !known || generic && kind != "array" && kind != "object":
		return nil, false, fmt.Errorf("it is none of str, int, float, bool, list, dict, Optional, Union, Literal, Any and " +
			"the classes of the source that are a BaseModel and do not contain themselves")
	case kind == "":
		return map[string]any{}, false, nil
	}
	schema = map[string]any{"type": kind}
	if kind == "array" {
		schema["items"] = map[string]any{}
		if generic && strings.TrimSpace(arguments[0]) != "" {
			if schema["items"], _, err = m.typeSchema(arguments[0]); err != nil {
				return nil, false, err
			}
		}
	}
	if kind == "object" && generic && len(arguments) > 1 {
		if schema["additionalProperties"], _, err = m.typeSchema(arguments[1]); err != nil {
			return nil, false, err
		}
	}
	return schema, kind == "null", nil
}

// splitAnnotation splits a type at each separator outside all brackets and strings.
func splitAnnotation(annotation string, separator byte) (parts []string) {
	code, _, err := scanPython(annotation)
	if err != nil {
		code = annotation
	}
	for _, p := range splitTop(annotation, code, separator) {
		if text := strings.TrimSpace(p.text); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		parts = []string{""}
	}
	return parts
}

// unionSchema returns the schema of a value that has one of several types.
func (m pythonModels) unionSchema(options []string) (map[string]any, bool, error) {
	var schemas []any
	nullable := false
	for _, o := range options {
		schema, null, err := m.typeSchema(o)
		if err != nil {
			return nil, false, err
		}
		if nullable = nullable || null; schema["type"] != "null" {
			schemas = append(schemas, schema)
		}
	}
	if len(schemas) == 1 {
		return schemas[0].(map[string]any), nullable, nil
	}
	return map[string]any{"anyOf": schemas}, nullable, nil
}

// literalSchema returns the schema of a value that is one of the given values.
func literalSchema(values []string) (map[string]any, bool, error) {
	schema := map[string]any{}
	var enum []any
	for _, v := range values {
		var value any
		switch {
		case len(v) > 1 && strings.ContainsRune(`"'`, rune(v[0])) && v[len(v)-1] == v[0]:
			value, schema["type"] = unquoted(v[1:len(v)-1], false), "string"
		case v == "True" || v == "False":
			value, schema["type"] = v == "True", "boolean"
		case v != "" && !strings.ContainsFunc(strings.TrimPrefix(v, "-"), func(r rune) bool { return !unicode.IsDigit(r) }):
			value, schema["type"] = json.Number(v), "integer"
		default:
			return nil, false, fmt.Errorf("the literal %s is no text, whole number or boolean", echo(v))
		}
		enum = append(enum, value)
	}
	schema["enum"] = enum
	return schema, false, nil
}
