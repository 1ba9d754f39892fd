package rest

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Schema is huma's. Types that describe their own schema need only it and Registry of huma.
type Schema = huma.Schema

// Registry is huma's registry of schemas.
type Registry = huma.Registry

// Context is huma's context of a request, for types that parse their parameters themselves.
type Context = huma.Context

// MaxInteger is the largest integer in a request if the field names no other maximum: the largest that a Postgres
// column of type integer holds.
const MaxInteger = math.MaxInt32

// boundIntegers sets bounds for the integers in requests: MaxInteger where there is no maximum, -MaxInteger where there
// is no minimum either.
func boundIntegers(d *huma.OpenAPI) {
	b := bounder{d.Components.Schemas, map[*Schema]bool{}}
	for _, path := range d.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				b.bound(p.Schema)
			}
			if op.RequestBody != nil {
				for _, content := range op.RequestBody.Content {
					b.bound(content.Schema)
				}
			}
		}
	}
}

type bounder struct {
	schemas Registry
	done    map[*Schema]bool
}

func (b bounder) bound(s *Schema) {
	if s != nil && s.Ref != "" {
		s = b.schemas.SchemaFromRef(s.Ref)
	}
	if s == nil || b.done[s] {
		return
	}
	b.done[s] = true
	if s.Type == huma.TypeInteger && s.Maximum == nil {
		least, most := -float64(MaxInteger), float64(MaxInteger)
		s.Maximum = &most
		if s.Minimum == nil {
			s.Minimum = &least
		}
		s.PrecomputeMessages()
	}
	b.bound(s.Items)
	for _, list := range [][]*Schema{s.OneOf, s.AnyOf, s.AllOf, slices.Collect(maps.Values(s.Properties))} {
		for _, part := range list {
			b.bound(part)
		}
	}
	if values, ok := s.AdditionalProperties.(*Schema); ok {
		b.bound(values)
	}
}

// Enum returns the schema of a text that must be one of values.
func Enum(values ...any) *Schema { return &Schema{Type: huma.TypeString, Enum: values} }

// OneOf returns the schema of a value that may have any one of types.
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

// Union returns the schema of an object that has one of several types; the object's property says which.
func Union(r Registry, property string, types map[string]reflect.Type) *Schema {
	s := &Schema{Discriminator: &huma.Discriminator{PropertyName: property, Mapping: map[string]string{}}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		schema := r.Schema(types[name], true, "")
		discriminator := r.SchemaFromRef(schema.Ref).Properties[property]
		if !slices.Contains(discriminator.Enum, any(name)) {
			discriminator.Enum = append(discriminator.Enum, name)
		}
		s.OneOf = append(s.OneOf, schema)
		s.Discriminator.Mapping[name] = schema.Ref
	}
	return s
}

// JSON is the media type of all answers except streams.
const JSON = "application/json"
