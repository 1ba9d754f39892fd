package rest

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Content describes a body with the schema of T.
func Content[T any](a *API, mediaType string) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{mediaType: {Schema: SchemaOf[T](a)}}
}

// SchemaOf returns the schema of T, as a reference if the type has a name.
func SchemaOf[T any](a *API) *huma.Schema {
	return a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}
