package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// harmless are fields of Letta's that get no warning: fields of answers that clients send back, and the choice of an
// embedding model, which the operator makes.
var harmless = []string{"id", "created_at", "updated_at", "created_by_id", "last_updated_by_id", "organization_id",
	"version", "embedding", "embedding_config", "embedding_chunk_size"}

// isHarmless reports whether an unknown field gets no warning. Fields in unserved are refused elsewhere.
func isHarmless(name string) bool { return slices.Contains(harmless, name) || whyUnserved(name) != "" }

// bodyNames checks the names of the fields of a JSON text against schemas.
type bodyNames struct {
	schemas  Registry
	text     []byte
	at       int // position of the next byte in text
	cuts     [][2]int
	warnings *Warnings
	strict   bool // an unknown field is refused
}

// checkNames returns a JSON value of a request, changed in place. It cuts fields that the schema lacks, with a warning
// for each, and zero fractions of integers, such as 7.0. Names are compared exactly, whereas encoding/json ignores
// case. A *Problem if an object has a field twice, or if a text cannot be stored. A text that is no JSON is returned
// unchanged.
func checkNames(schemas Registry, s *Schema, place string, text []byte,
	warnings *Warnings) ([]byte, *Problem) {
	b := bodyNames{schemas: schemas, text: text, warnings: warnings}
	return b.check(s, place)
}

// check does checkNames.
func (b *bodyNames) check(s *Schema, place string) ([]byte, *Problem) {
	text := b.text
	if !json.Valid(text) {
		return text, nil
	}
	if err := b.value(place, b.leaves(s)); err != nil {
		return nil, err
	}
	if len(b.cuts) == 0 {
		return text, nil
	}
	shortened, from := text[:0], 0
	for _, cut := range b.cuts {
		shortened, from = append(shortened, text[from:cut[0]]...), cut[1]
	}
	return append(shortened, text[from:]...), nil
}

// Fault returns a sentence about why a JSON value is refused: an object has a field twice, or a text cannot be stored.
// It returns "" for a good value.
func Fault(place string, value []byte) string {
	if _, problem := checkNames(nil, nil, place, value, &Warnings{}); problem != nil {
		return strings.TrimPrefix(string(problem.Detail), "body.")
	}
	return ""
}

// leaves returns the schemas that a value of s may have, with references and alternatives resolved.
func (b *bodyNames) leaves(s *Schema) []*Schema {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		return b.leaves(b.schemas.SchemaFromRef(s.Ref))
	}
	all := []*Schema{s}
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		all = append(all, b.leaves(part)...)
	}
	return all
}

// value reads a value with one of several schemas; without schemas, any value.
func (b *bodyNames) value(place string, schemas []*Schema) *Problem {
	if isWritten(place) {
		b.skip()
		return nil
	}
	switch b.next() {
	case '{':
		return b.object(place, schemas)
	case '[':
		return b.list(place, schemas)
	case '"':
		return b.storable(place, b.quoted())
	default:
		start := b.at
		for b.at < len(b.text) && !strings.ContainsRune(",]} \t\r\n", rune(b.text[b.at])) {
			b.at++
		}
		b.cutFraction(start, schemas)
	}
	return nil
}

// skip skips a value.
func (b *bodyNames) skip() {
	b.next()
	d := json.NewDecoder(bytes.NewReader(b.text[b.at:]))
	var value json.RawMessage
	_ = d.Decode(&value) // the text is valid
	b.at += int(d.InputOffset())
}

// cutFraction cuts a fraction of zeros off an integer, because encoding/json does not read 7.0 into an int.
func (b *bodyNames) cutFraction(from int, of []*Schema) {
	whole, zeros, _ := bytes.Cut(b.text[from:b.at], []byte("."))
	isInteger := slices.ContainsFunc(of, func(s *Schema) bool { return s.Type == huma.TypeInteger })
	if isInteger && len(zeros) > 0 && len(bytes.Trim(zeros, "0")) == 0 {
		b.cuts = append(b.cuts, [2]int{from + len(whole), b.at})
	}
}

func (b *bodyNames) list(place string, schemas []*Schema) *Problem {
	var items []*Schema
	for _, s := range schemas {
		items = append(items, b.leaves(s.Items)...)
	}
	b.at++
	for i := 0; b.next() != ']'; i++ {
		if err := b.value(fmt.Sprintf("%s[%d]", place, i), items); err != nil {
			return err
		}
		b.comma()
	}
	b.at++
	return nil
}

func (b *bodyNames) object(place string, schemas []*Schema) *Problem {
	known, anyName := b.known(schemas)
	names := map[string]bool{}
	end := 0 // end of the last field that is kept
	for b.at++; b.next() != '}'; {
		start := b.at
		name := b.string()
		fieldPlace := strings.TrimPrefix(place+"."+name, ".")
		if err := b.storable(fieldPlace, b.text[start:b.at]); err != nil {
			return err
		}
		if names[name] {
			return twice(fieldPlace)
		}
		names[name] = true
		b.next()
		b.at++ // the colon
		b.next()
		value := b.at
		cuts := len(b.cuts)
		if err := b.value(fieldPlace, known[name]); err != nil {
			return err
		}
		if _, ok := known[name]; ok || anyName {
			end = b.at
			b.comma()
			continue
		}
		if err := b.refuse(name, fieldPlace, b.text[value:b.at], slices.Collect(maps.Keys(known))); err != nil {
			return err
		}
		if !isHarmless(name) {
			b.warnings.addUnknown("field", fieldPlace, slices.Collect(maps.Keys(known)))
		}
		b.cuts = b.cuts[:cuts]
		if last := b.at; end > 0 {
			b.cuts, end = append(b.cuts, [2]int{end, last}), last
			b.comma()
		} else {
			b.comma()
			b.cuts = append(b.cuts, [2]int{start, b.at})
		}
	}
	b.at++
	return nil
}

// refuse returns a *Problem for an unknown field that is not left out with a warning; nil for any other.
func (b *bodyNames) refuse(name, place string, value []byte, known []string) *Problem {
	problem := cmp.Or(refuseField(name, place, value), refuseUnknown(name, place, known))
	isUnserved := unserved[name] != "" && slices.Contains(empty, string(value))
	if problem == nil && b.strict && !isUnserved {
		return unknownName("field", "body."+place, name, known)
	}
	return problem
}

func twice(at string) *Problem {
	return Unprocessable("body."+at, "the field is there twice; send it once")
}

// known returns the fields that objects with one of several schemas may have, with their schemas. anyName reports
// whether any other field is allowed too.
func (b *bodyNames) known(schemas []*Schema) (fields map[string][]*Schema, anyName bool) {
	fields, anyName = map[string][]*Schema{}, true
	for _, s := range schemas {
		switch {
		case s.Properties != nil:
			_, open := s.AdditionalProperties.(*Schema) // true is every object's, for the published description
			anyName = anyName && open
			for name, property := range s.Properties {
				fields[name] = append(fields[name], b.leaves(property)...)
			}
		case s.Type == huma.TypeObject:
			return nil, true
		}
	}
	return fields, anyName
}

// next skips white space and returns the byte after it.
func (b *bodyNames) next() byte {
	for b.at < len(b.text)-1 && strings.ContainsRune(" \t\r\n", rune(b.text[b.at])) {
		b.at++
	}
	return b.text[b.at]
}

// comma skips a comma, if there is one.
func (b *bodyNames) comma() {
	if b.next() == ',' {
		b.at++
	}
}

// quoted returns the next string with its quotation marks and escapes.
func (b *bodyNames) quoted() []byte {
	start := b.at
	for b.at++; b.text[b.at] != '"'; b.at++ {
		if b.text[b.at] == '\\' {
			b.at++
		}
	}
	b.at++
	return b.text[start:b.at]
}

// string reads the next string and decodes it.
func (b *bodyNames) string() string {
	var text string
	_ = json.Unmarshal(b.quoted(), &text) // the text is valid
	return text
}

// bodySchema returns the schema of an operation's JSON body; an operation without a body gets an object without fields.
// The schema knows the unmatched filters where they are served.
func bodySchema(op *huma.Operation) *Schema {
	if op.RequestBody == nil || op.RequestBody.Content[JSON] == nil {
		return &Schema{Type: huma.TypeObject, Properties: map[string]*Schema{}}
	}
	s := op.RequestBody.Content[JSON].Schema
	names := unmatchedBy(op.Method, op.Path)
	if len(names) == 0 {
		return s
	}
	ignored := &Schema{Type: huma.TypeObject, Properties: map[string]*Schema{}}
	for _, name := range names {
		ignored.Properties[name] = &Schema{}
	}
	return &Schema{AllOf: []*Schema{s, ignored}}
}

// unknownParameters warns of the query parameters that an operation does not have. It leaves out those that
// refuseParameter refuses.
func unknownParameters(op *huma.Operation, query url.Values) (w Warnings) {
	names := parameters(op)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		unmatched := slices.Contains(unmatchedBy(op.Method, op.Path), name)
		if name != "order_by" && unserved[name] == "" && !unmatched && !slices.Contains(names, name) {
			w.addUnknown("parameter", name, names)
		}
	}
	return w
}

// storable returns a *Problem for a string that cannot be stored. If a model, a tool or a person said the string, it
// warns instead.
func (b *bodyNames) storable(place string, text []byte) *Problem {
	switch {
	case isStorable(text):
		return nil
	case !isSaid(place):
		return Unprocessable("body."+place, "the text has a NUL, half of a surrogate pair, or bytes that are not UTF-8, "+
			"which cannot be stored; leave them out")
	case b.warnings != nil:
		b.warnings.add("body." + shorten(place) + " has characters that cannot be stored: ␀ is stored in place of a NUL, " +
			"and U+FFFD in place of half of a surrogate pair or of bytes that are not UTF-8")
	}
	return nil
}
