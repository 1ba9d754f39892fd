package erase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// names says whose words the names of fields are in a JSON value.
type names int

const (
	ownNames     names = iota // Loci's, Letta's or a provider's, which stay
	callersNames              // a caller's: what is in them is erased
	schemaNames               // JSON Schema's, which stay
	memberNames               // of what a schema describes: a caller's
)

// Fields whose values have names of another kind than those around them.
var (
	callersFields = []string{"metadata", "metadata_", "arguments", "args", "input", "tool_args", "value"}
	schemaFields  = []string{"parameters", "input_schema", "json_schema", "args_json_schema", "schema"}
	memberFields  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentRequired"}
	exampleFields = []string{"default", "const", "enum", "example", "examples"}
)

// below returns whose words the names in the value of a field are.
func (n names) below(field string, value any) names {
	_, isObject := value.(map[string]any)
	switch n {
	case callersNames:
		return callersNames
	case memberNames:
		return schemaNames
	case schemaNames:
		switch {
		case slices.Contains(memberFields, field):
			return memberNames
		case slices.Contains(exampleFields, field):
			return callersNames
		}
		return schemaNames
	case ownNames:
		switch {
		case slices.Contains(schemaFields, field):
			return schemaNames
		case field == "input" && !isObject: // messages
		case slices.Contains(callersFields, field):
			return callersNames
		}
	}
	return ownNames
}

// ownField matches the names of fields as Loci, Letta and providers write them. Others among theirs are a caller's.
var ownField = regexp.MustCompile(`^[a-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?$`)

// stay reports whether an erasure leaves the names.
func (n names) stay() bool { return n == ownNames || n == schemaNames }

// machineWords are fields of JSON whose values are mostly words of Loci or of a provider.
var machineWords = []string{"type", "kind", "role", "status", "object"}

var (
	plainWord = regexp.MustCompile(`^[a-z_.-]+$`)
	plainID   = regexp.MustCompile(`^[A-Za-z]+[-_][0-9A-Za-z_-]+$`)
)

// isOwnWord reports whether a value of a field is a word of Loci or a provider, which an erasure leaves.
func isOwnWord(name, value string) bool {
	return slices.Contains(machineWords, name) && plainWord.MatchString(value)
}

// isOwnID reports whether a value of a field is an id, which an erasure leaves: a call and its result share theirs.
func isOwnID(name, value string) bool {
	return name == "call_id" || name == "tool_call_id" ||
		(name == "id" || strings.HasSuffix(name, "_id")) && plainID.MatchString(value)
}

// isOwn reports whether a value of a field is a word or an id of Loci or a provider.
func isOwn(name, value string) bool { return isOwnWord(name, value) || isOwnID(name, value) }

// erasedJSON is a JSON text after an erasure.
type erasedJSON struct {
	text string
	n    int // occurrences that were erased
	kept int // those that stay, as whole words of ids
}

// eraseJSON returns JSON with a mark in the place of each occurrence, in texts and in names that are a caller's.
func (m *matcher) eraseJSON(raw string, of names) erasedJSON {
	same := erasedJSON{text: raw}
	if !m.in(raw) && strings.Count(raw, `"text"`) < 2 { // two may have it together
		return same
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		text, n := m.erase(raw)
		return erasedJSON{text, n, 0}
	}
	w := jsonEraser{matcher: m}
	changed := w.value(value, "", of)
	if same.kept = w.kept; w.n == 0 {
		return same
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(changed); err != nil {
		return same
	}
	return erasedJSON{strings.TrimSuffix(b.String(), "\n"), w.n, w.kept}
}

// jsonEraser erases in one JSON value.
type jsonEraser struct {
	*matcher
	n, kept int
}

func (w *jsonEraser) text(text string) string {
	text, n := w.erase(text)
	w.n += n
	return text
}

// value returns the value of a field without the occurrences.
func (w *jsonEraser) value(value any, name string, of names) any {
	switch v := value.(type) {
	case string:
		switch {
		case of.stay() && isOwnWord(name, v):
			return v
		case of.stay() && isOwnID(name, v):
			w.kept += w.words(v)
			return v
		}
		return w.text(v)
	case json.Number:
		if text, n := w.erase(v.String()); n > 0 {
			w.n += n
			return text
		}
	case []any:
		w.n += w.acrossTexts(v)
		for i := range v {
			v[i] = w.value(v[i], name, of)
		}
	case map[string]any:
		return w.object(v, of)
	}
	return value
}

func (w *jsonEraser) object(v map[string]any, of names) map[string]any {
	object := make(map[string]any, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		to := key
		if !of.stay() || of == ownNames && !ownField.MatchString(key) {
			to = w.text(key)
		}
		for n := 2; ; n++ { // two names may be the same without what is erased
			if _, taken := object[to]; !taken {
				break
			}
			to = fmt.Sprintf("%s %d", mark, n)
		}
		object[to] = w.value(v[key], key, of.below(key, v[key]))
	}
	return object
}

// acrossTexts erases from neighboring objects with a field text, as the parts of a message are, what only they have
// together. It returns how many occurrences there were.
func (w *jsonEraser) acrossTexts(list []any) (n int) {
	var pieces []string
	for i := 0; i <= len(list); i++ {
		if i < len(list) {
			if part, ok := list[i].(map[string]any); ok {
				if text, ok := part["text"].(string); ok {
					pieces = append(pieces, text)
					continue
				}
			}
		}
		for _, between := range []string{"", "\n"} {
			after, k := w.eraseAcross(pieces, between)
			pieces, n = after, n+k
		}
		for k, text := range pieces {
			list[i-len(pieces)+k].(map[string]any)["text"] = text //nolint:forcetypeassert // as above
		}
		pieces = nil
	}
	return n
}

// words returns how many occurrences there are in an id that begin and end with a word of it. Others are chance: ids
// are random.
func (m *matcher) words(id string) (n int) {
	for _, s := range m.find(id) {
		before, _ := utf8.DecodeLastRuneInString(id[:s.from])
		after, _ := utf8.DecodeRuneInString(id[s.to:])
		if !isWordRune(before) && !isWordRune(after) {
			n++
		}
	}
	return n
}
