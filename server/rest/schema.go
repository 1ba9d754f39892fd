package rest

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Schema is huma's. Types that describe themselves need no other part of huma but the Registry.
type Schema = huma.Schema

// Registry is huma's.
type Registry = huma.Registry

// Context is a request of an operation, for types that read parameters in a way of their own.
type Context = huma.Context

// MaxInteger is the largest integer that a request may contain where its field names no other: that of a column of type
// integer.
const MaxInteger = math.MaxInt32

// boundIntegers gives each integer of a request that has no maximum MaxInteger, its negative as the least where it has
// no minimum.
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

// Enum returns the schema of a text that is one of several.
func Enum(values ...any) *Schema { return &Schema{Type: huma.TypeString, Enum: values} }

// OneOf returns the schema of a value that has one of several types.
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

// Union returns the schema of an object whose type a property names.
func Union(r Registry, property string, types map[string]reflect.Type) *Schema {
	s := &Schema{Discriminator: &huma.Discriminator{PropertyName: property, Mapping: map[string]string{}}}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		of := r.Schema(types[name], true, "")
		if named := r.SchemaFromRef(of.Ref).Properties[property]; !slices.Contains(named.Enum, any(name)) {
			named.Enum = append(named.Enum, name)
		}
		s.OneOf = append(s.OneOf, of)
		s.Discriminator.Mapping[name] = of.Ref
	}
	return s
}

// JSON is the media type of all answers but streams.
const JSON = "application/json"
