package rest

import (
	"maps"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Schema is huma's. Types that describe themselves need no other part of huma but the Registry.
type Schema = huma.Schema

// Registry is huma's.
type Registry = huma.Registry

// Enum is the schema of a text that is one of several.
func Enum(values ...any) *Schema { return &Schema{Type: huma.TypeString, Enum: values} }

// OneOf is the schema of a value that has one of several types.
func OneOf(r Registry, types ...reflect.Type) *Schema {
	s := &Schema{}
	for _, t := range types {
		if t.Kind() == reflect.String {
			s.OneOf = append(s.OneOf, &Schema{Type: huma.TypeString})
		} else {
			s.OneOf = append(s.OneOf, r.Schema(t, true, ""))
		}
	}
	return s
}

// Union is the schema of an object whose type a property names.
func Union(r Registry, property string, types map[string]reflect.Type) *Schema {
	s := &Schema{Discriminator: &huma.Discriminator{PropertyName: property, Mapping: map[string]string{}}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		of := r.Schema(types[name], true, "")
		s.OneOf = append(s.OneOf, of)
		s.Discriminator.Mapping[name] = of.Ref
	}
	return s
}
