package filter

import "time"

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
