package rest

import (
	_ "embed" // words.md
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed words.md
var wordsTable string

// word describes a field: its meaning, and an example, which may be absent.
type word struct {
	meaning string
	example json.RawMessage
}

// readWords reads the table of words.md.
func readWords() map[string]word {
	words := map[string]word{}
	for line := range strings.Lines(wordsTable) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			words[strings.TrimSpace(cells[1])] = word{strings.TrimSpace(cells[3]), json.RawMessage(strings.TrimSpace(cells[2]))}
		}
	}
	return words
}

// describer adds descriptions and examples to the API's document.
type describer struct {
	words   map[string]word
	schemas Registry
	done    map[*Schema]bool
}

func (a *API) describer() *describer {
	return &describer{words: readWords(), schemas: a.OpenAPI().Components.Schemas, done: map[*Schema]bool{}}
}

// meaning returns the description of a field of a type; empty if words.md has none.
func (c *describer) meaning(typ, field string) string {
	for _, name := range []string{typ + "." + field, field} {
		if w, ok := c.words[name]; ok && w.meaning != "" {
			return w.meaning
		}
	}
	return ""
}

// schema describes the fields of a type. It also marks lists as never null, and turns the text about a pattern into a
// description.
func (c *describer) schema(name string, s *Schema) {
	if s == nil || c.done[s] {
		return
	}
	c.done[s] = true
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.PatternDescription != "" {
		if s.Description == "" {
			s.Description = capitalized(s.PatternDescription) + "."
		}
		s.PatternDescription = "" // huma has built the error message from it already
	}
	for field, property := range s.Properties {
		if untyped(property) {
			c.giveType(property, name, field)
			if property.Extensions["type"] == huma.TypeObject {
				property.Extensions["type"] = []string{huma.TypeObject, "null"}
			}
		}
		if property.Description == "" {
			property.Description = c.meaning(name, field)
		}
		c.schema(name, property)
	}
	values, _ := s.AdditionalProperties.(*Schema)
	if s.Items != nil && untyped(s.Items) {
		c.giveType(s.Items, name, "")
	}
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf, []*Schema{s.Items, values}) {
		c.schema(name, part)
	}
}

// untyped reports whether a schema is one of a json.RawMessage, which accepts any JSON.
func untyped(s *Schema) bool {
	return s.Type == "" && s.Ref == "" && len(s.OneOf)+len(s.AnyOf)+len(s.AllOf)+len(s.Extensions) == 0
}

// giveType sets the type of a schema that accepts any JSON: the type of the field's example, or object. The types stand
// only in the document: huma does not check requests against extensions.
func (c *describer) giveType(s *Schema, typ, field string) {
	example := string(c.words[typ+"."+field].example) + string(c.words[field].example) + "{"
	anyObject := map[string]any{"type": huma.TypeObject, "additionalProperties": true}
	switch {
	case example[0] == '[':
		s.Extensions = map[string]any{"type": huma.TypeArray, "items": anyObject}
	case example[0] == '"':
		s.Extensions = map[string]any{"type": huma.TypeString}
	case strings.HasPrefix(example, "true") || strings.HasPrefix(example, "false"):
		s.Extensions = map[string]any{"type": huma.TypeBoolean}
	case strings.ContainsRune("-0123456789", rune(example[0])):
		s.Extensions = map[string]any{"type": huma.TypeNumber}
	default:
		s.Extensions = anyObject
	}
}

func capitalized(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// operation describes an operation's parameters, and the bodies without a named type.
func (c *describer) operation(op *huma.Operation) {
	for _, p := range op.Parameters {
		c.schema("", p.Schema)
		if p.Ref == "" && p.Description == "" {
			p.Description = c.meaning("", p.Name)
		}
		if p.Ref == "" && p.Description == "" {
			p.Description = p.Schema.Description
		}
	}
	for _, content := range contentsOf(op) {
		c.schema("", content.Schema)
	}
}

// contentsOf returns the bodies of an operation's request and of its answers.
func contentsOf(op *huma.Operation) (list []*huma.MediaType) {
	if op.RequestBody != nil {
		list = slices.Collect(maps.Values(op.RequestBody.Content))
	}
	for _, r := range op.Responses {
		list = slices.AppendSeq(list, maps.Values(r.Content))
	}
	return list
}

// examples adds an example to each body of an operation. Bodies of a named type share one.
func (c *describer) examples(d *huma.OpenAPI, op *huma.Operation) {
	if op.RequestBody != nil {
		for _, content := range op.RequestBody.Content {
			c.exampleOf(d, content, true)
		}
	}
	for _, r := range op.Responses {
		for _, content := range r.Content {
			c.exampleOf(d, content, false)
		}
	}
}

func (c *describer) exampleOf(d *huma.OpenAPI, content *huma.MediaType, isRequest bool) {
	if content.Example != nil || content.Examples != nil || content.Schema == nil {
		return
	}
	name, list := nameOf(content.Schema), content.Schema.Type == huma.TypeArray
	if list {
		name = nameOf(content.Schema.Items)
	}
	e := exampler{describer: c, asked: isRequest}
	value := e.of(content.Schema, "", "")
	if name == "" {
		content.Example = value
		return
	}
	if list {
		name += "List"
	}
	if d.Components.Examples == nil {
		d.Components.Examples = map[string]*huma.Example{}
	}
	d.Components.Examples[name] = &huma.Example{Summary: "An example of " + name + ".", Value: value}
	content.Examples = map[string]*huma.Example{name: {Ref: "#/components/examples/" + name}}
}

// nameOf returns the name of the type that a schema refers to; empty for a schema that is no reference.
func nameOf(s *Schema) string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// exampler builds examples from schemas.
type exampler struct {
	*describer
	asked bool     // for a request: optional fields are left out unless words.md has an example for the type's field
	open  []string // the types that contain the one being built
}

// of returns an example for a schema that describes a field of a type; nil if the schema contains itself.
func (e *exampler) of(s *Schema, typ, field string) any {
	if s.Type == "null" {
		return json.RawMessage("null")
	}
	if typ != "" {
		for _, name := range []string{typ + "." + field, field} {
			if w := e.words[name]; len(w.example) > 0 && e.fits(s, w.example) {
				return w.example
			}
		}
	}
	if name := nameOf(s); name != "" {
		if slices.Contains(e.open, name) {
			return nil
		}
		e.open = append(e.open, name)
		defer func() { e.open = e.open[:len(e.open)-1] }()
		return e.of(e.schemas.SchemaFromRef(s.Ref), name, "")
	}
	return e.literal(s, typ, field)
}

// fits reports whether an example satisfies a schema.
func (e *exampler) fits(s *Schema, example json.RawMessage) bool {
	var value any
	if json.Unmarshal(example, &value) != nil {
		return false
	}
	var result huma.ValidateResult
	huma.Validate(e.schemas, s, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, &result)
	return len(result.Errors) == 0
}

// literal returns an example for a schema that is no reference.
func (e *exampler) literal(s *Schema, typ, field string) any {
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return e.of(s.OneOf[0], typ, field)
	}
	switch s.Type {
	case huma.TypeObject:
		return e.object(s, typ)
	case huma.TypeArray:
		if item := e.of(s.Items, "", ""); item != nil {
			return []any{item}
		}
		return []any{}
	case huma.TypeInteger, huma.TypeNumber:
		if s.Minimum != nil {
			return max(*s.Minimum, 1)
		}
		return 1
	case huma.TypeBoolean:
		return true
	case huma.TypeString:
		if s.Format == "date-time" {
			return "2026-01-31T18:05:00Z"
		}
		return "text"
	}
	return struct{}{} // any JSON
}

func (e *exampler) object(s *Schema, typ string) any {
	object := map[string]any{}
	for field, property := range s.Properties {
		_, chosen := e.words[typ+"."+field]
		if e.asked && !chosen && !slices.Contains(s.Required, field) {
			continue
		}
		if value := e.of(property, typ, field); value != nil {
			object[field] = value
		}
	}
	return object
}
