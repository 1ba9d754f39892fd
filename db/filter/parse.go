package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Parse reads a filter on rows with some fields. Dates without an offset are in zone; nil is UTC. An empty text, null
// and {} leave all rows. A *db.FieldError names the part that is wrong, and the nearest known name.
func Parse(raw json.RawMessage, fields Fields, zone *time.Location) (Filter, error) {
	if zone == nil {
		zone = time.UTC
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return Filter{}, nil
	}
	if len(raw) > MaxBytes {
		return Filter{}, invalid("filter", fmt.Sprintf("it has %d bytes; it may have %d", len(raw), MaxBytes))
	}
	if !json.Valid(raw) || raw[0] != '{' {
		return Filter{}, invalid("filter", `it is no JSON object, such as {"metadata.food": "sushi"}`)
	}
	p := parser{fields: fields, zone: zone}
	root, err := p.object("filter", raw, 0)
	if err != nil || len(root.all) == 0 {
		return Filter{}, err
	}
	return Filter{root, zone}, nil
}

type parser struct {
	fields Fields
	zone   *time.Location
	tests  int
	values int
}

// member is a field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the fields of a JSON object, in their order. An error if one is there twice.
func members(at string, raw json.RawMessage) (all []member, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the brace; the text is valid
	for d.More() {
		name, _ := d.Token()
		m := member{name: name.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, invalid(at, "it cannot be read")
		}
		if slices.ContainsFunc(all, func(o member) bool { return o.name == m.name }) {
			return nil, invalid(at+"."+m.name, "it is there twice; combine both with and")
		}
		if all = append(all, m); len(all) > maxTests {
			return nil, tooMany(at)
		}
	}
	return all, nil
}

func tooMany(at string) error {
	return invalid(at, fmt.Sprintf("a filter has at most %d comparisons", maxTests))
}

// object reads conditions that all must be met.
func (p *parser) object(at string, raw json.RawMessage, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, invalid(at, fmt.Sprintf("and, or and not nest at most %d levels", maxDepth))
	}
	if raw[0] != '{' {
		return nil, invalid(at, `it must be an object of conditions, such as {"metadata.food": "sushi"}`)
	}
	list, err := members(at, raw)
	if err != nil {
		return nil, err
	}
	all := &node{of: "and"}
	for _, m := range list {
		part, err := p.member(at+"."+m.name, m, depth)
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, part)
	}
	return all, nil
}

func (p *parser) member(at string, m member, depth int) (*node, error) {
	switch m.name {
	case "and", "or":
		return p.list(at, m, depth)
	case "not":
		part, err := p.object(at, m.value, depth+1)
		if err == nil && len(part.all) == 0 {
			err = invalid(at, "it has no condition")
		}
		return &node{of: "not", all: []*node{part}}, err
	}
	name, rest, nested := strings.Cut(m.name, ".")
	field, known := p.fields[name]
	switch {
	case !known:
		return nil, unknown(at, "field", name, append(p.fields.names(), combined...))
	case nested && field.Kind != JSON:
		return nil, invalid(at, name+" is "+string(field.Kind)+", and has no fields of its own")
	}
	var path []string
	if nested {
		path = strings.Split(rest, ".")
	}
	return p.field(at, Test{Field: name, Path: path}, len(path) == 0, m.value)
}

// list reads the conditions of and, and of or.
func (p *parser) list(at string, m member, depth int) (*node, error) {
	var items []json.RawMessage
	if m.value[0] != '[' || json.Unmarshal(m.value, &items) != nil || len(items) == 0 {
		return nil, invalid(at, "it takes a list of conditions, which are objects")
	}
	all := &node{of: m.name}
	for i, raw := range items {
		place := fmt.Sprintf("%s[%d]", at, i)
		part, err := p.object(place, raw, depth+1)
		if err != nil {
			return nil, err
		}
		if len(part.all) == 0 {
			return nil, invalid(place, "it has no condition")
		}
		all.all = append(all.all, part)
	}
	return all, nil
}

// field reads what a field is compared with: a value, a list of values of which it must be one, an object of operators
// or, of metadata that nests, an object of its fields. A field that its path names does not: a misspelled
// operator of it is refused.
func (p *parser) field(at string, t Test, nests bool, raw json.RawMessage) (*node, error) {
	if len(t.Path) > maxPath {
		return nil, invalid(at, fmt.Sprintf("a path has at most %d names", maxPath))
	}
	isJSON := p.fields[t.Field].Kind == JSON
	switch raw[0] {
	case '[':
		t.Op = "in"
		return p.test(at, t, raw)
	case '{':
	default:
		t.Op = "eq"
		return p.test(at, t, raw)
	}
	list, err := members(at, raw)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid(at, "it has no operator; there are "+strings.Join(operators, ", "))
	}
	inside := nests && isJSON && !slices.ContainsFunc(list, func(m member) bool { return isOperator(m.name) })
	all := &node{of: "and"}
	for _, m := range list {
		place, part := at+"."+m.name, (*node)(nil)
		if inside {
			nested := t
			nested.Path = append(slices.Clone(t.Path), m.name)
			part, err = p.field(place, nested, true, m.value)
		} else if !isOperator(m.name) {
			return nil, unknown(place, "operator", m.name, operators)
		} else {
			t.Op = m.name
			part, err = p.test(place, t, m.value)
		}
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, part)
	}
	return all, nil
}

// test reads one comparison.
func (p *parser) test(at string, t Test, raw json.RawMessage) (*node, error) {
	kind := p.fields[t.Field].Kind
	if p.tests++; p.tests > maxTests {
		return nil, tooMany(at)
	}
	switch {
	case !kind.fits(t.Op):
		return nil, invalid(at, fmt.Sprintf("%s does not fit %s, which is %s", t.Op, t.Field, kind))
	case kind == JSON && len(t.Path) == 0:
		return nil, invalid(at, fmt.Sprintf("it compares a field of %s: name it, as in %[1]s.food", t.Field))
	}
	items := []json.RawMessage{raw}
	if t.Op == "in" || t.Op == "nin" {
		if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
			return nil, invalid(at, t.Op+" takes a list of values")
		}
		if p.values += len(items); p.values > maxValues {
			return nil, invalid(at, fmt.Sprintf("a filter has at most %d values in its lists", maxValues))
		}
	}
	for _, item := range items {
		v, err := scalar(at, bytes.TrimSpace(item), p.zone)
		if err == nil {
			err = v.check(at, kind, t.Op)
		}
		if err != nil {
			return nil, err
		}
		t.values = append(t.values, v)
	}
	return &node{test: t}, nil
}
