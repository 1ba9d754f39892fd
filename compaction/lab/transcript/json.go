package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// document is the text of a transcript.
type document struct {
	name string
	data []byte
	left *[]*Error // what was left out because it is broken; nil: what is broken refuses the document
}

// value is a JSON value, and the offset at which it begins in its document.
type value struct {
	raw json.RawMessage
	at  int
}

// object is a JSON object, and the offset at which it begins.
type object struct {
	at     int
	fields map[string]value
}

// usage returns what a provider counted, from a field usage in the form of any provider or of Pi.
func (o object) usage() chat.Usage {
	var pi struct{ Input, Output, CacheRead, CacheWrite int }
	raw := o.fields["usage"].raw
	if u := chat.NewObject(map[string]json.RawMessage{"usage": raw}, nil).Usage("usage"); raw == nil || u.Prompt > 0 ||
		json.Unmarshal(raw, &pi) != nil || min(pi.Input, pi.CacheRead, pi.CacheWrite) < 0 {
		return u
	}
	return chat.Usage{Prompt: pi.Input + pi.CacheRead + pi.CacheWrite, Completion: pi.Output, CacheRead: pi.CacheRead,
		CacheWrite: pi.CacheWrite}
}

// fail returns an error about an offset in the document.
func (d document) fail(at int, format string, args ...any) error {
	at = min(max(at, 0), len(d.data))
	return &Error{Name: d.name, Line: 1 + bytes.Count(d.data[:at], []byte("\n")), Why: fmt.Sprintf(format, args...)}
}

// object reads a value that must be an object.
func (d document) object(v value) (object, error) {
	o := object{at: v.at, fields: map[string]value{}}
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return o, d.fail(v.at, "expected an object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return o, d.syntax(v.at, dec, err)
		}
		name, ok := key.(string)
		if !ok {
			return o, d.fail(v.at, "expected an object")
		}
		if o.fields[name], err = d.next(v.at, dec); err != nil {
			return o, err
		}
	}
	return o, nil
}

// list reads a value that must be a list.
func (d document) list(v value) (all []value, err error) {
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return nil, d.fail(v.at, "expected a list")
	}
	for dec.More() {
		item, err := d.next(v.at, dec)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// next reads a decoder's next value. at is the offset at which the decoder's text begins.
func (d document) next(at int, dec *json.Decoder) (v value, err error) {
	if err := dec.Decode(&v.raw); err != nil {
		return v, d.syntax(at, dec, err)
	}
	v.at = at + int(dec.InputOffset()) - len(v.raw)
	return v, nil
}

// syntax returns the error for text that is not JSON.
func (d document) syntax(begin int, dec *json.Decoder, err error) error {
	offset := dec.InputOffset()
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = bad.Offset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return d.fail(len(bytes.TrimRight(d.data, " \t\r\n")), "the JSON ends too early")
	}
	return d.fail(begin+int(offset)-1, "no valid JSON: %v", err)
}

// values reads all values in the document: a single JSON value, or one per line.
func (d document) values() (all []value, err error) {
	dec := json.NewDecoder(bytes.NewReader(d.data))
	for {
		v, err := d.next(0, dec)
		if err != nil {
			rest := bytes.TrimSpace(d.data[dec.InputOffset():])
			if len(rest) == 0 {
				return all, nil
			}
			if err = d.broken(all, err); d.left == nil {
				return nil, err
			}
			return d.lines(err)
		}
		all = append(all, v)
	}
}

// text returns a text field; empty if the field is not a text.
func (o object) text(name string) (s string) {
	if json.Unmarshal(o.fields[name].raw, &s) != nil {
		return ""
	}
	return s
}

// flag reports whether a field is true.
func (o object) flag(name string) (is bool) {
	return json.Unmarshal(o.fields[name].raw, &is) == nil && is
}

// has reports whether a field is there and not null.
func (o object) has(name string) bool {
	raw := o.fields[name].raw
	return len(raw) > 0 && string(raw) != "null"
}

// isList reports whether a field is a list.
func (o object) isList(name string) bool { return bytes.HasPrefix(o.fields[name].raw, []byte("[")) }

// isObject reports whether a field is an object.
func (o object) isObject(name string) bool { return bytes.HasPrefix(o.fields[name].raw, []byte("{")) }

// time returns a field with a time, as text or in milliseconds since 1970; nil for any other field. A text without a
// time zone is in UTC.
func (o object) time(name string) *time.Time {
	var ms float64
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, o.text(name)); err == nil {
			return &t
		}
	}
	if json.Unmarshal(o.fields[name].raw, &ms) != nil || ms <= 0 || ms > 1e14 {
		return nil
	}
	t := time.UnixMilli(int64(ms)).UTC()
	return &t
}

// chat reads an object as a message of a chat API.
func (d document) chat(o object) ([]recall.Draft, error) {
	fields := make(map[string]json.RawMessage, len(o.fields))
	for name, v := range o.fields {
		fields[name] = v.raw
	}
	message := chat.NewObject(fields, time.UTC)
	drafts := chat.Read(message)
	if err := message.Err(); err != nil {
		return nil, d.fail(o.at, "%v", err)
	}
	return drafts, nil
}

// with returns a copy of the object with fields set.
func (o object) with(fields map[string]any) object {
	all := object{at: o.at, fields: make(map[string]value, len(o.fields)+len(fields))}
	maps.Copy(all.fields, o.fields)
	for name, v := range fields {
		all.fields[name] = value{raw: chat.Encode(v), at: o.at}
	}
	return all
}

// without returns a copy of the object without a field.
func (o object) without(name string) object {
	fields := maps.Clone(o.fields)
	delete(fields, name)
	return object{at: o.at, fields: fields}
}

// json returns the object's fields as JSON.
func (o object) json() string {
	fields := make(map[string]json.RawMessage, len(o.fields))
	for name, v := range o.fields {
		fields[name] = v.raw
	}
	return string(chat.Encode(fields))
}
