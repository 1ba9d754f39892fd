package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/recall"
)

const maxShownBytes = 100 // bytes of a value that an error shows

// Object is a JSON object in a request. Its methods read fields one by one. If a field is not what the method asks for,
// the method returns a zero value and notes the problem; Err returns the first one.
type Object struct {
	*problem
	At     string // the object's place in the request; empty for the body
	fields map[string]json.RawMessage
	raw    json.RawMessage // the object as it was sent; nil for the body
}

// FieldError says that a request's field is not understood.
type FieldError struct {
	At   string // the field's place, such as messages[0].content
	Rule string // what is expected, as a phrase
}

func (e *FieldError) Error() string { return e.At + ": " + e.Rule }

// problem is shared by all objects of a request. It holds the first field that was not understood, and the time zone of
// times without an offset.
type problem struct {
	first *FieldError
	zone  *time.Location
}

// Failed reports whether a field was not understood.
func (p *problem) Failed() bool { return p.first != nil }

// Err returns a *FieldError, or nil if all fields were understood.
func (p *problem) Err() error {
	if p.first == nil {
		return nil
	}
	return p.first
}

// NewObject returns the outermost object of a request. Times without an offset are in zone.
func NewObject(fields map[string]json.RawMessage, zone *time.Location) Object {
	return Object{problem: &problem{zone: zone}, fields: fields}
}

// Within returns the place of the named field in the request.
func (i Object) Within(name string) string {
	if i.At == "" {
		return name
	}
	return i.At + "." + name
}

// Has reports whether a field is there and not null.
func (i Object) Has(name string) bool {
	raw := i.fields[name]
	return len(raw) > 0 && string(raw) != "null"
}

// JSON returns a field as received; nil if it is absent or null.
func (i Object) JSON(name string) json.RawMessage {
	if !i.Has(name) {
		return nil
	}
	return i.fields[name]
}

// Refuse notes what is wrong with a field.
func (i Object) Refuse(name, rule string) {
	if i.Failed() {
		return
	}
	if raw := i.fields[name]; len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		if len(raw) > maxShownBytes {
			raw = append(bytes.ToValidUTF8(raw[:maxShownBytes], nil), "…"...)
		}
		rule += ". Got: " + string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	}
	i.first = &FieldError{i.Within(name), rule}
}

// Text returns the text of a field; empty if it is absent.
func (i Object) Text(name string) (s string) {
	if i.Has(name) && (i.fields[name][0] != '"' || json.Unmarshal(i.fields[name], &s) != nil) {
		i.Refuse(name, "expected a text")
	}
	return s
}

// Needed returns a text that must be present and not empty.
func (i Object) Needed(name string) string {
	s := i.Text(name)
	if s == "" {
		i.Refuse(name, "expected a text that is not empty")
	}
	return s
}

// Given returns a text that must be present but may be empty.
func (i Object) Given(name string) string {
	if !i.Has(name) {
		i.Refuse(name, "expected a text")
	}
	return i.Text(name)
}

// Optional returns a text; nil if it is absent or empty.
func (i Object) Optional(name string) *string {
	if s := i.Text(name); s != "" {
		return &s
	}
	return nil
}

// OneOf returns a text that must be one of known.
func (i Object) OneOf(name string, known ...string) string {
	s := i.Text(name)
	if !slices.Contains(known, s) {
		i.Refuse(name, "expected one of "+strings.Join(known, ", "))
		return ""
	}
	return s
}

// Flag returns a boolean; false if it is absent.
func (i Object) Flag(name string) (b bool) {
	if i.Has(name) && json.Unmarshal(i.fields[name], &b) != nil {
		i.Refuse(name, "expected true or false")
	}
	return b
}

// Time returns a time in ISO 8601; nil if it is absent. Without an offset it is in the request's time zone.
func (i Object) Time(name string) *time.Time {
	at, err := recall.ParseStart(i.Text(name), i.zone)
	if err != nil {
		i.Refuse(name, "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	return at
}

// Object returns a field that must be an object.
func (i Object) Object(name string) Object {
	o := Object{problem: i.problem, At: i.Within(name), raw: i.fields[name]}
	if !i.Has(name) || json.Unmarshal(i.fields[name], &o.fields) != nil {
		i.Refuse(name, "expected an object")
	}
	return o
}

// Items returns the objects in a field: the items of a list, or the field itself if it is an object. what describes the
// expected objects in the error about any other value.
func (i Object) Items(name, what string) []Object {
	if !i.Has(name) {
		return nil
	}
	if i.fields[name][0] == '{' {
		one := i.Object(name)
		one.At = place(one.At, 0)
		return []Object{one}
	}
	var list []json.RawMessage
	if json.Unmarshal(i.fields[name], &list) != nil {
		i.Refuse(name, "expected "+what)
	}
	all := make([]Object, len(list))
	for n, raw := range list {
		if all[n] = i.Item(name, n, raw); all[n].fields == nil {
			return nil
		}
	}
	return all
}

// Item returns the nth item of the list in a field. The item must be an object.
func (i Object) Item(name string, n int, raw json.RawMessage) Object {
	item := Object{problem: i.problem, At: place(i.Within(name), n), raw: raw}
	if (json.Unmarshal(raw, &item.fields) != nil || item.fields == nil) && !i.Failed() {
		i.first = &FieldError{item.At, "expected an object"}
	}
	return item
}

// Texts returns a list of texts; nil if it is absent.
func (i Object) Texts(name string) (all []string) {
	if i.Has(name) && json.Unmarshal(i.fields[name], &all) != nil {
		i.Refuse(name, "expected a list of texts")
	}
	return all
}

func place(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
