package rest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
)

// explain makes errors about alternatives useful. huma only says that a value matches none of them; explain says what
// is wrong with the value in the first alternative of the value's type. The locations of the errors begin with root,
// the place of schema's value.
func explain[E error](schemas Registry, root string, schema *Schema, broken []E) []error {
	var explained []error
	for _, err := range broken {
		explained = append(explained, explainOne(schemas, root, schema, err)...)
	}
	return explained
}

func explainOne(schemas Registry, root string, schema *Schema, err error) []error {
	detail, ok := errors.AsType[*huma.ErrorDetail](err)
	if !ok || detail.Message != validation.MsgExpectedMatchExactlyOneSchema {
		return []error{err}
	}
	rest, ok := strings.CutPrefix(detail.Location, root)
	if !ok {
		return []error{err}
	}
	found := schemaAt(schemas, schema, rest)
	if found == nil || len(found.OneOf) == 0 {
		return []error{err}
	}
	var names []string
	for _, form := range found.OneOf {
		form = resolved(schemas, form)
		names = append(names, formName(schemas, form))
		if formType(form) != jsonType(detail.Value) {
			continue
		}
		var result huma.ValidateResult
		path := huma.NewPathBuffer([]byte(detail.Location), len(detail.Location))
		huma.Validate(schemas, form, path, huma.ModeWriteToServer, detail.Value, &result)
		return explain(schemas, detail.Location, form, result.Errors)
	}
	return []error{&huma.ErrorDetail{
		Location: detail.Location, Message: "expected " + strings.Join(names, " or "), Value: detail.Value,
	}}
}

// schemaAt returns the schema at a path such as .messages[2].content; nil if no single schema stands there.
func schemaAt(schemas Registry, schema *Schema, path string) *Schema {
	for schema = resolved(schemas, schema); path != "" && schema != nil; schema = resolved(schemas, schema) {
		length := strings.IndexAny(path[1:], ".[") + 1
		if length == 0 {
			length = len(path)
		}
		step := path[1:length]
		if path = path[length:]; strings.HasSuffix(step, "]") {
			if _, err := strconv.Atoi(strings.TrimSuffix(step, "]")); err != nil {
				return nil
			}
			schema = schema.Items
			continue
		}
		schema = property(schema, step)
	}
	return schema
}

// property returns the schema of an object's property; nil if the object has no such property.
func property(object *Schema, name string) *Schema {
	for _, part := range object.AllOf {
		if schema := part.Properties[name]; schema != nil {
			return schema
		}
	}
	return object.Properties[name]
}

// resolved follows a reference.
func resolved(schemas Registry, schema *Schema) *Schema {
	if schema != nil && schema.Ref != "" {
		return schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// formName names the form that a schema accepts in a few words, such as "array of strings".
func formName(schemas Registry, schema *Schema) string {
	switch kind := formType(schema); kind {
	case "array":
		if items := resolved(schemas, schema.Items); items != nil && items.Type != "" {
			return "array of " + items.Type + "s"
		}
		return kind
	case "":
		return "another form"
	default:
		return kind
	}
}

// formType returns the JSON type of a schema's values. Integers are numbers.
func formType(schema *Schema) string {
	switch {
	case schema.Type == huma.TypeInteger:
		return huma.TypeNumber
	case schema.Type == "" && (schema.Discriminator != nil || schema.Properties != nil):
		return huma.TypeObject
	}
	return schema.Type
}

// jsonType returns the type of a decoded JSON value, in the words of JSON Schema.
func jsonType(value any) string {
	switch value.(type) {
	case string:
		return huma.TypeString
	case bool:
		return huma.TypeBoolean
	case []any:
		return huma.TypeArray
	case map[string]any:
		return huma.TypeObject
	case nil:
		return "null"
	}
	return huma.TypeNumber
}
