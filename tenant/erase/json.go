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

// names tells who chose the field names of a JSON value.
type names int

const (
	ownNames     names = iota // Loci, Letta or a provider; they stay
	callersNames              // a caller; texts in them are erased
	schemaNames               // JSON Schema; they stay
	memberNames               // a caller, who named the members that a schema describes
)

// These fields contain field names of another kind than the fields around them.
var (
	callersFields = []string{"metadata", "metadata_", "arguments", "args", "input", "tool_args", "value"}
	schemaFields  = []string{"parameters", "input_schema", "json_schema", "args_json_schema", "schema"}
	memberFields  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentRequired"}
	exampleFields = []string{"default", "const", "enum", "example", "examples"}
)

// below returns the kind of the field names within a field's value.
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
		case field == "input" && !isObject: // a list of messages
		case slices.Contains(callersFields, field):
			return callersNames
		}
	}
	return ownNames
}

// ownField matches field names in the style of Loci, Letta and providers. Any other name is a caller's.
var ownField = regexp.MustCompile(`^[a-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?$`)

// stay reports whether an erasure leaves field names of this kind unchanged.
func (n names) stay() bool { return n == ownNames || n == schemaNames }

// machineWords are JSON fields with values that are mostly words of Loci or a provider.
var machineWords = []string{"type", "kind", "role", "status", "object"}

var (
	plainWord = regexp.MustCompile(`^[a-z_.-]+$`)
	plainID   = regexp.MustCompile(`^[A-Za-z]+[-_][0-9A-Za-z_-]+$`)
)

// isOwnWord reports whether a field's value is a word of Loci or a provider. An erasure leaves it unchanged.
func isOwnWord(name, value string) bool {
	return slices.Contains(machineWords, name) && plainWord.MatchString(value)
}

// isOwnID reports whether a field's value is an id. An erasure leaves it unchanged, because a call and its result share
// an id.
func isOwnID(name, value string) bool {
	return name == "call_id" || name == "tool_call_id" ||
		(name == "id" || strings.HasSuffix(name, "_id")) && plainID.MatchString(value)
}

// isOwn reports whether a field's value is a word or an id of Loci or a provider.
func isOwn(name, value string) bool { return isOwnWord(name, value) || isOwnID(name, value) }

// erasedJSON is the result of an erasure in a JSON text.
type erasedJSON struct {
	text string
	n    int // erased occurrences
	kept int // occurrences that stay, because they are whole words of ids
}

// eraseJSON replaces each occurrence by a mark, in texts and in field names that a caller chose.
func (m *matcher) eraseJSON(raw string, kind names) erasedJSON {
	same := erasedJSON{text: raw}
	// Two neighboring texts may form an occurrence together.
	if !m.in(raw) && strings.Count(raw, `"text"`) < 2 {
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
	changed := w.value(value, "", kind)
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
func (w *jsonEraser) value(value any, name string, kind names) any {
	switch v := value.(type) {
	case string:
		switch {
		case kind.stay() && isOwnWord(name, v):
			return v
		case kind.stay() && isOwnID(name, v):
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
			v[i] = w.value(v[i], name, kind)
		}
	case map[string]any:
		return w.object(v, kind)
	}
	return value
}

func (w *jsonEraser) object(v map[string]any, kind names) map[string]any {
	object := make(map[string]any, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		to := key
		if !kind.stay() || kind == ownNames && !ownField.MatchString(key) {
			to = w.text(key)
		}
		// Two names may become equal.
		for n := 2; ; n++ {
			if _, taken := object[to]; !taken {
				break
			}
			to = fmt.Sprintf("%s %d", mark, n)
		}
		object[to] = w.value(v[key], key, kind.below(key, v[key]))
	}
	return object
}

// acrossTexts erases occurrences that span neighboring objects with a field text, such as the parts of a message. It
// returns their number.
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

// words counts the occurrences in an id that begin and end at word boundaries. Ids are random, so other occurrences are
// chance.
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
