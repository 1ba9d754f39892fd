package rest

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Content describes a body of a type.
func Content[T any](a *API, mediaType string) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mediaType: {Schema: SchemaOf[T](a)}}
}

// SchemaOf is the schema of a type, a reference where it has a name.
func SchemaOf[T any](a *API) *huma.Schema {
	return a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}
