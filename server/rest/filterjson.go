package rest

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// Filter is a filter of a search, as db/filter reads it, kept as it was written.
type Filter json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (f *Filter) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(f).UnmarshalJSON(raw) }

// MarshalJSON implements json.Marshaler.
func (f Filter) MarshalJSON() ([]byte, error) { return json.RawMessage(f).MarshalJSON() }

const filterName = "Filter"

// Schema implements huma.SchemaProvider. All filters have one schema, which refers to itself.
func (f Filter) Schema(r huma.Registry) *huma.Schema {
	ref := func() *Schema { return &Schema{Ref: "#/components/schemas/" + filterName} }
	given := &Schema{AnyOf: []*Schema{ref(), {Type: "null"}}}
	if r.Map()[filterName] != nil {
		return given
	}
	described := func(s *Schema, text string) *Schema {
		s.Description = text
		return s
	}
	conditions := func(text string) *Schema {
		return described(&Schema{Type: huma.TypeArray, Items: ref()}, text)
	}
	scalar := []*Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}, {Type: huma.TypeBoolean}, {Type: "null"}}
	value := func(text string) *Schema { return &Schema{AnyOf: scalar, Description: text} }
	values := func(text string) *Schema {
		return described(&Schema{Type: huma.TypeArray, Items: &Schema{AnyOf: scalar}}, text)
	}
	compared := &Schema{Type: huma.TypeObject,
		Description: "What a field is compared with: all of it must hold. Of metadata, an object of its fields, too.",
		Properties: map[string]*Schema{
			"eq": value("It is this; null: it is absent."), "ne": value("It is not this, or it is absent."),
			"in": values("It is one of these."), "nin": values("It is none of these, or it is absent."),
			"gt":  value("It is greater, or later: dates compare as dates, a date as the whole of its day."),
			"gte": value("It is greater or the same."), "lt": value("It is less, or earlier."),
			"lte":      value("It is less or the same."),
			"exists":   described(&Schema{Type: huma.TypeBoolean}, "Whether there is a value that is not null."),
			"contains": value("A text has this text in it, or a list this value."),
			"prefix":   described(&Schema{Type: huma.TypeString}, "A text begins with this, or one of a list of texts."),
		}}
	comparison := &Schema{Ref: "#/components/schemas/Comparison"}
	r.Map()["Comparison"] = compared
	alternatives := append([]*Schema{{Type: huma.TypeArray, Items: &Schema{AnyOf: scalar}}, comparison}, scalar...)
	compared.AdditionalProperties = &Schema{AnyOf: alternatives}
	r.Map()[filterName] = &Schema{Type: huma.TypeObject,
		Description: "Conditions that all must hold, by the names of fields: metadata and what is in it, such as " +
			"metadata.food, tags, created_at, role, tool, user, conversation, folder, file and others. A value is compared " +
			"with eq, a list with in.",
		Properties: map[string]*Schema{"and": conditions("All of these hold."), "or": conditions("One of these holds."),
			"not": described(&Schema{AnyOf: []*Schema{ref()}}, "This does not hold.")},
		AdditionalProperties: &Schema{AnyOf: alternatives}}
	return given
}
