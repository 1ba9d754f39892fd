package capture

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

const maxShownBytes = 100 // of a value in an error

// item is an object of a request whose fields are read one by one. at is its place, empty for the body. A field that
// is not what is asked for reads as nothing, and is noted: err tells in the end.
type item struct {
	*trouble
	at     string
	fields map[string]json.RawMessage
}

// trouble is the first thing in a request that was not understood.
type trouble struct{ first *rest.Problem }

func (t *trouble) failed() bool { return t.first != nil }

// err is what was wrong, nil if nothing was.
func (t *trouble) err() error {
	if t.first == nil {
		return nil
	}
	return t.first
}

// within is the place of a field.
func (i item) within(name string) string {
	if i.at == "" {
		return name
	}
	return i.at + "." + name
}

// has reports whether a field is there; null is not.
func (i item) has(name string) bool {
	raw := i.fields[name]
	return len(raw) > 0 && string(raw) != "null"
}

// refuse notes what is wrong with a field.
func (i item) refuse(name, rule string) {
	if i.failed() {
		return
	}
	if raw := i.fields[name]; len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		if len(raw) > maxShownBytes {
			raw = append(bytes.ToValidUTF8(raw[:maxShownBytes], nil), "…"...)
		}
		rule += ". Got: " + string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	}
	i.first = rest.Unprocessable(i.within(name), rule)
}

// text is a field's, empty if it is absent.
func (i item) text(name string) (s string) {
	if i.has(name) && (i.fields[name][0] != '"' || json.Unmarshal(i.fields[name], &s) != nil) {
		i.refuse(name, "expected a text")
	}
	return s
}

// needed is a text that must be there.
func (i item) needed(name string) string {
	s := i.text(name)
	if s == "" {
		i.refuse(name, "expected a text that is not empty")
	}
	return s
}

// given is a text that must be there, and may be empty.
func (i item) given(name string) string {
	if !i.has(name) {
		i.refuse(name, "expected a text")
	}
	return i.text(name)
}

// optional is a text; nil if it is absent or empty.
func (i item) optional(name string) *string {
	if s := i.text(name); s != "" {
		return &s
	}
	return nil
}

// oneOf is a text that must be one of several.
func (i item) oneOf(name string, known ...string) string {
	s := i.text(name)
	if !slices.Contains(known, s) {
		i.refuse(name, "expected one of "+strings.Join(known, ", "))
		return ""
	}
	return s
}

func (i item) flag(name string) (b bool) {
	if i.has(name) && json.Unmarshal(i.fields[name], &b) != nil {
		i.refuse(name, "expected true or false")
	}
	return b
}

// time is a moment in ISO 8601, in UTC where it names no other zone; nil if it is absent.
func (i item) time(name string) *time.Time {
	at, err := recall.ParseStart(i.text(name), time.UTC)
	if err != nil {
		i.refuse(name, "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	return at
}

// object is a field that must be an object.
func (i item) object(name string) item {
	o := item{trouble: i.trouble, at: i.within(name)}
	if !i.has(name) || json.Unmarshal(i.fields[name], &o.fields) != nil {
		i.refuse(name, "expected an object")
	}
	return o
}

// items are the objects of a field: of a list, or the field itself. what is said of a field that is neither.
func (i item) items(name, what string) []item {
	if !i.has(name) {
		return nil
	}
	if i.fields[name][0] == '{' {
		one := i.object(name)
		one.at = place(one.at, 0)
		return []item{one}
	}
	var list []json.RawMessage
	if json.Unmarshal(i.fields[name], &list) != nil {
		i.refuse(name, "expected "+what)
	}
	all := make([]item, len(list))
	for n, raw := range list {
		all[n] = item{trouble: i.trouble, at: place(i.within(name), n)}
		if json.Unmarshal(raw, &all[n].fields) != nil || all[n].fields == nil {
			if !i.failed() {
				i.first = rest.Unprocessable(all[n].at, "expected an object")
			}
			return nil
		}
	}
	return all
}

// texts are those of a list; nil if it is absent.
func (i item) texts(name string) (all []string) {
	if i.has(name) && json.Unmarshal(i.fields[name], &all) != nil {
		i.refuse(name, "expected a list of texts")
	}
	return all
}
