package erase

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// machineWords are fields of JSON whose values are mostly words of Loci or of a provider.
var machineWords = []string{"type", "kind", "role", "status", "object"}

var (
	plainWord = regexp.MustCompile(`^[a-z_.-]+$`)
	plainID   = regexp.MustCompile(`^[A-Za-z]+[-_][0-9A-Za-z_-]+$`)
)

func isCallID(name string) bool { return name == "call_id" || name == "tool_call_id" }

// isOwn reports whether a value of a field is a word or an id of Loci or a provider, which an erasure leaves. A call
// and its result share their id.
func isOwn(name, value string) bool {
	switch {
	case isCallID(name):
		return true
	case slices.Contains(machineWords, name):
		return plainWord.MatchString(value)
	}
	return (name == "id" || strings.HasSuffix(name, "_id")) && plainID.MatchString(value)
}

// eraseJSON returns JSON of a caller's with a mark in the place of each occurrence, in names and texts.
func (m *matcher) eraseJSON(raw string) (string, int) {
	after, e := m.erasedJSON(raw, true)
	return after, e.found
}

// inJSON is what an erasure does in a JSON value.
type inJSON struct {
	*matcher
	found int // occurrences that are erased
	left  int // occurrences in ids, which stay
}

// callersObjects are names of objects whose own names are a caller's.
var callersObjects = []string{"metadata", "metadata_", "json_schema", "args_json_schema", "schema", "parameters",
	"properties", "definitions", "$defs", "response_format", "value", "arguments", "args", "input", "tool_args", "default"}

// ownField matches the names of fields as Loci and providers write them.
var ownField = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*_?$`)

// erasedJSON is eraseJSON of JSON that is a caller's, or has fields of Loci's own, whose names stay.
func (m *matcher) erasedJSON(raw string, callers bool) (string, inJSON) {
	e := inJSON{matcher: m}
	if len(m.find(raw)) == 0 {
		return raw, e
	}
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		raw, e.found = m.erase(raw)
		return raw, e
	}
	changed := e.value(value, "", callers)
	if e.found == 0 {
		return raw, e
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(changed); err != nil {
		return raw, inJSON{matcher: m}
	}
	return strings.TrimSuffix(b.String(), "\n"), e
}

// value returns a value of a field without what is erased.
func (e *inJSON) value(value any, name string, callers bool) any {
	switch v := value.(type) {
	case string:
		if isOwn(name, v) {
			if strings.HasSuffix(name, "id") && !isCallID(name) {
				e.left += len(e.find(v))
			}
			return v
		}
		text, n := e.erase(v)
		e.found += n
		return text
	case json.Number:
		if text, n := e.erase(v.String()); n > 0 {
			e.found += n
			return text
		}
	case []any:
		for i := range v {
			v[i] = e.value(v[i], name, callers)
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for field, item := range v {
			to, n := field, 0
			if callers || !ownField.MatchString(field) {
				to, n = e.erase(field)
			}
			e.found += n
			object[to] = e.value(item, field, callers || slices.Contains(callersObjects, field))
		}
		return object
	}
	return value
}

// inOwn returns how often a text is there that has the form of JSON of Loci's or a provider's, or no form.
func (m *matcher) inOwn(text string) int {
	if !m.in(text) || !json.Valid([]byte(text)) {
		return len(m.find(text))
	}
	_, e := m.erasedJSON(text, false)
	return e.found
}
