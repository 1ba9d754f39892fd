package filter

import (
	"encoding/json"
	"slices"
	"time"
)

// Texts returns the texts of which a row's list must have one; nil if the test asks for something else.
func (t Test) Texts() []string {
	switch t.Op {
	case "eq", "in", "contains":
	default:
		return nil
	}
	for _, v := range t.values {
		if v.kind != "string" {
			return nil
		}
	}
	return append([]string{}, texts(t.values)...)
}

// Objects returns JSON objects of which a row's metadata must contain one, as jsonb's @> compares. It returns nil if
// the test asks for something else, or for a date, which may be written in several ways.
func (t Test) Objects() (all []string) {
	if t.Op != "eq" && t.Op != "in" || len(t.Path) == 0 {
		return nil
	}
	for _, v := range t.values {
		if v.isTime || v.kind == "null" {
			return nil
		}
		var object any = json.RawMessage(v.json)
		for _, name := range slices.Backward(t.Path) {
			object = map[string]any{name: object}
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil
		}
		all = append(all, string(text))
	}
	return all
}

// Span returns bounds of a time, both inclusive, outside of which no row passes the test. A nil one is open.
func (t Test) Span() (start, end *time.Time) {
	if len(t.values) == 0 || !t.values[0].isTime {
		return nil, nil
	}
	switch v := t.values[0]; t.Op {
	case "eq":
		return &v.first, &v.last
	case "gt", "gte":
		return &v.first, nil
	case "lt", "lte":
		return nil, &v.last
	}
	return nil, nil
}
