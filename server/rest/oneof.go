package rest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
)

// explain replaces each error of a value that has none of several forms, which says no more than that, by what is wrong
// with it in the first form of its type. The locations of the errors begin with root, where schema's value is.
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
	at := schemaAt(schemas, schema, rest)
	if at == nil || len(at.OneOf) == 0 {
		return []error{err}
	}
	var names []string
	for _, form := range at.OneOf {
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

// schemaAt returns the schema of the value at a path such as .messages[2].content; nil if it is in none alone.
func schemaAt(schemas Registry, schema *Schema, path string) *Schema {
	for schema = resolved(schemas, schema); path != "" && schema != nil; schema = resolved(schemas, schema) {
		end := strings.IndexAny(path[1:], ".[") + 1
		if end == 0 {
			end = len(path)
		}
		step := path[1:end]
		if path = path[end:]; strings.HasSuffix(step, "]") {
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

// property returns the schema of an object's property; nil if it is in none of its parts.
func property(object *Schema, name string) *Schema {
	for _, part := range object.AllOf {
		if found := part.Properties[name]; found != nil {
			return found
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

// formName says in two or three words what a schema takes.
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

// formType returns the JSON type of a schema's values; that of integers is number.
func formType(schema *Schema) string {
	switch {
	case schema.Type == huma.TypeInteger:
		return huma.TypeNumber
	case schema.Type == "" && (schema.Discriminator != nil || schema.Properties != nil):
		return huma.TypeObject
	}
	return schema.Type
}

// jsonType returns the type of a decoded JSON value as schemas name it.
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
