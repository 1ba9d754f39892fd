package rest

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Opt is a field or query parameter that is absent (Set is false), null (Set and Null), or has a Value (Set, not Null).
type Opt[T any] struct {
	Set, Null bool
	Value     T
}

// UnmarshalJSON implements json.Unmarshaler. encoding/json calls it for null too.
func (o *Opt[T]) UnmarshalJSON(raw []byte) error {
	*o = Opt[T]{Set: true, Null: bytes.Equal(raw, []byte("null"))}
	if o.Null {
		return nil
	}
	return json.Unmarshal(raw, &o.Value)
}

// Pointer returns the value; nil if it is absent or null.
func (o Opt[T]) Pointer() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}

// Schema implements huma.SchemaProvider.
func (o Opt[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.Schema(reflect.TypeFor[T](), false, "")
	schema.Nullable = true
	return &schema
}

// Receiver implements huma.ParamWrapper.
func (o *Opt[T]) Receiver() reflect.Value { return reflect.ValueOf(&o.Value).Elem() }

// OnParamSet implements huma.ParamReactor.
func (o *Opt[T]) OnParamSet(set bool, _ any) { o.Set = set }

// Object is a JSON object that is kept as it was written.
type Object json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(raw) }

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema implements huma.SchemaProvider.
func (o Object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// Null is the type of a field that is always null.
type Null struct{}

// MarshalJSON implements json.Marshaler.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Schema implements huma.SchemaProvider.
func (Null) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: "null"} }
