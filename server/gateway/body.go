package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/loci-memory/loci/recall/chat"
)

// span is a place in a request's bytes.
type span struct{ from, to int }

// body is a request whose bytes are changed only where something is added.
type body struct {
	raw    []byte
	fields map[string]span
	items  []span // of the list of messages
	list   string // the name of that list
	edits  []edit
}

// edit replaces bytes.
type edit struct {
	span
	with []byte
}

var errNoObject = errors.New("the request is no JSON object")

// readBody finds the fields of a request. Of a field that stands there twice the last one counts, as for most parsers.
func readBody(raw []byte) (*body, error) {
	b := &body{raw: raw, fields: map[string]span{}}
	err := eachField(raw, 0, func(name string, value span) { b.fields[name] = value })
	return b, err
}

// eachField calls take with the fields of the object in raw, whose first byte is at offset.
func eachField(raw []byte, offset int, take func(name string, value span)) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errNoObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		end := offset + int(d.InputOffset())
		text, _ := name.(string)
		take(text, span{end - len(value), end})
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw[d.InputOffset():])) > 0 {
		return errNoObject
	}
	return nil
}

// itemsOf returns the items of a list.
func itemsOf(raw []byte, offset int) (items []span) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	for d.More() {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		end := offset + int(d.InputOffset())
		items = append(items, span{end - len(value), end})
	}
	return items
}

func (b *body) of(s span) json.RawMessage { return b.raw[s.from:s.to] }

// field returns a field's JSON; nil if it is absent or null.
func (b *body) field(name string) json.RawMessage {
	s, has := b.fields[name]
	if !has || string(b.of(s)) == "null" {
		return nil
	}
	return b.of(s)
}

// text returns a field that is a text; empty for any other.
func (b *body) text(name string) (text string) {
	_ = json.Unmarshal(b.field(name), &text) // anything else has no text
	return text
}

// readItems finds the items of the list of messages.
func (b *body) readItems(list string) {
	b.list = list
	if s, has := b.fields[list]; has {
		b.items = itemsOf(b.of(s), s.from)
	}
}

// rawItems returns the messages, also of an input that is only a text.
func (b *body) rawItems() (all []json.RawMessage) {
	raw := b.field(b.list)
	if len(raw) > 0 && raw[0] == '"' {
		return []json.RawMessage{chat.Encode(map[string]any{"role": "user", "content": raw})}
	}
	for _, s := range b.items {
		all = append(all, b.of(s))
	}
	return all
}

// addToText adds a text behind a text or a list of parts, and reports whether there is one. partType is the type of a
// part with a text.
func (b *body) addToText(s span, text, partType string) bool {
	raw := b.of(s)
	switch {
	case len(raw) >= 2 && raw[0] == '"':
		b.insert(s.to-1, escaped(text))
		return true
	case len(raw) >= 2 && raw[0] == '[':
		part := chat.Encode(map[string]string{"type": partType, "text": text})
		if len(itemsOf(raw, 0)) > 0 {
			part = append(json.RawMessage{','}, part...)
		}
		b.insert(s.to-1, part)
		return true
	}
	return false
}

// addToItem adds a text behind the content of the message with an index.
func (b *body) addToItem(index int, text, partType string) bool {
	if raw := b.field(b.list); len(raw) > 0 && raw[0] == '"' {
		return b.addToText(b.fields[b.list], text, partType)
	}
	content, has := b.contentOf(index)
	return has && b.addToText(content, text, partType)
}

func (b *body) contentOf(index int) (content span, has bool) {
	item := b.items[index]
	_ = eachField(b.of(item), item.from, func(name string, value span) { // it was parsed before
		if name == "content" {
			content, has = value, true
		}
	})
	return content, has
}

// addField adds a field before all others.
func (b *body) addField(name string, value json.RawMessage) {
	field := append(append(chat.Encode(name), ':'), value...)
	if len(b.fields) > 0 {
		field = append(field, ',')
	}
	b.insert(bytes.IndexByte(b.raw, '{')+1, field)
}

// addFirstItem adds a message before all others.
func (b *body) addFirstItem(message any) {
	if raw := b.field(b.list); len(raw) == 0 || raw[0] != '[' {
		return // the provider refuses such a request
	}
	at := b.fields[b.list].from + 1
	item := chat.Encode(message)
	if len(b.items) > 0 {
		item = append(item, ',')
	}
	b.insert(at, item)
}

func (b *body) insert(at int, with []byte) { b.edits = append(b.edits, edit{span{at, at}, with}) }

// replace replaces the JSON of a field.
func (b *body) replace(name string, value any) {
	b.edits = append(b.edits, edit{b.fields[name], chat.Encode(value)})
}

// bytes returns the request with what was added.
func (b *body) bytes() []byte {
	if len(b.edits) == 0 {
		return b.raw
	}
	var out bytes.Buffer
	at := 0
	for _, e := range b.merged() {
		out.Write(b.raw[at:e.from])
		out.Write(e.with)
		at = e.to
	}
	out.Write(b.raw[at:])
	return out.Bytes()
}

// merged returns the edits in the order of their places. Where bytes are replaced, nothing else is changed, except
// that a text that is added to the end of a replaced text or list stands at the end of what replaces it.
func (b *body) merged() (all []edit) {
	slices.SortStableFunc(b.edits, func(a, b edit) int {
		if a.from == b.from && (a.to == a.from || b.to == b.from) {
			return a.to - b.to // what is inserted stands before what is replaced
		}
		return cmp.Or(a.from-b.from, b.to-a.to)
	})
	for _, e := range b.edits {
		n := len(all) - 1
		if n < 0 || e.from >= all[n].to || all[n].from == all[n].to {
			all = append(all, e)
			continue
		}
		within := all[n]
		size := len(within.with)
		if e.from == e.to && e.to == within.to-1 && size > 0 && within.with[size-1] == b.raw[within.to-1] {
			all[n].with = slices.Insert(slices.Clone(within.with), size-1, e.with...)
		}
	}
	return all
}

// escaped returns a text as it stands between quotes in JSON.
func escaped(text string) []byte {
	raw := chat.Encode(text)
	return raw[1 : len(raw)-1]
}
