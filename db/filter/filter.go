// Package filter narrows lists and searches by what rows hold: their metadata, tags, times and origins. A filter is a
// JSON object, such as {"metadata.food": "sushi", "created_at": {"gte": "2026-01-01"}}. It is parsed against the fields
// that a memory declares, and compiles to a condition in SQL with arguments.
//
// Each file uses only the files named before it: filter.go names.go value.go parse.go compile.go bounds.go
// indexed.go
package filter

import "time"

// Limits of a filter.
const (
	MaxBytes  = 64 << 10 // of its JSON
	maxDepth  = 8        // levels of and, or and not
	maxTests  = 100      // comparisons
	maxValues = 1_000    // values of in and nin, together
	maxPath   = 10       // names in a path of metadata
	maxDigits = 40       // characters of a number
)

// Kind is the type of a field's values.
type Kind string

// The kinds.
const (
	Text   Kind = "a text"
	Texts  Kind = "a list of texts"
	Time   Kind = "a time"
	Number Kind = "a number"
	JSON   Kind = "JSON"
)

// Field is what a filter may ask of a row.
type Field struct {
	Kind Kind
	SQL  string // of the row $; NULL if the row has no value. @org is the organization
}

// Fields are the fields of a memory's rows, by name.
type Fields map[string]Field

// Filter is a condition on rows. The zero value leaves all rows.
type Filter struct {
	root *node
	zone *time.Location
}

// Empty reports whether the filter leaves all rows.
func (f Filter) Empty() bool { return f.root == nil }

// node is a part of a filter: a combination of parts, or a test.
type node struct {
	of   string // and, or, not; empty: a test
	all  []*node
	test Test
}

// Test compares one field with values.
type Test struct {
	Field  string
	Path   []string // of metadata: the names of nested objects
	Op     string
	values []value
}

// Must returns the tests that every row must pass: those that no or and no not contains.
func (f Filter) Must() []Test {
	if f.root == nil {
		return nil
	}
	return f.root.must()
}

func (n *node) must() (all []Test) {
	switch n.of {
	case "":
		return []Test{n.test}
	case "and":
		for _, part := range n.all {
			all = append(all, part.must()...)
		}
	}
	return all
}

// Asks returns the names of the fields that the filter asks for, each once.
func (f Filter) Asks() map[string]bool {
	names := map[string]bool{}
	var add func(n *node)
	add = func(n *node) {
		if n.of == "" {
			names[n.test.Field] = true
		}
		for _, part := range n.all {
			add(part)
		}
	}
	if f.root != nil {
		add(f.root)
	}
	return names
}
