package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// ListReader reads a body that is an object with a list, and keeps one item of the list in memory at a time.
type ListReader[T any] struct {
	property string
	schemas  huma.Registry
	schema   *huma.Schema
	values   int // that an item may have
}

// NewListReader returns a reader of the list in a property. Each item is checked against the schema of T.
func NewListReader[T any](a *API, property string) *ListReader[T] {
	return &ListReader[T]{property, a.OpenAPI().Components.Schemas, SchemaOf[T](a), maxBodyValues}
}

// Large returns a reader whose items may have as many values as an agent with its history.
func (l *ListReader[T]) Large() *ListReader[T] {
	large := *l
	large.values = maxItemValues
	return &large
}

// Items yields the items of a body, and adds to warnings the fields that it does not know. The first error is the last
// thing that is yielded.
func (l *ListReader[T]) Items(body io.Reader, warnings *Warnings) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		wanted := true
		err := l.object(json.NewDecoder(&boundedTexts{Reader: withoutBOM(body)}), warnings, func(item T) bool {
			wanted = yield(item, nil)
			return wanted
		})
		if err != nil && wanted {
			var none T
			yield(none, bodyError(err))
		}
	}
}

// bodyError says what is wrong with a body that cannot be read to its end.
func bodyError(err error) error {
	_, own := errors.AsType[*Problem](err)
	_, limit := errors.AsType[*http.MaxBytesError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	mismatch, unfit := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case own || limit:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return Malformed("body: unexpected end of JSON input")
	case syntax:
		return Malformed("body: " + err.Error())
	case unfit: // a number beyond all floats
		return newProblem(codeInvalid, mismatched("body", mismatch.Error()))
	}
	return Malformed("The request's body broke off: " + err.Error())
}

// errEnough ends the reading of a body whose remaining items nobody wants.
var errEnough = errors.New("enough")

// object hands the items of the list to take until it returns false.
func (l *ListReader[T]) object(in *json.Decoder, warnings *Warnings, take func(T) bool) error {
	found := false
	err := eachField(in, "expected object", func(name string) error {
		if name != l.property {
			warnings.addUnknown("field", name, []string{l.property})
			return skip(in, func() {})
		}
		found = true
		return eachItem(in, "body."+name, func(i int, raw json.RawMessage) error {
			at := fmt.Sprintf("%s[%d]", name, i)
			item, err := l.Item(at, raw, warnings)
			if err == nil && !take(item) {
				err = errEnough
			}
			return err
		})
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && !found:
		return Unprocessable("body", "expected required property "+l.property+" to be present")
	}
	return err
}

// eachField calls take with the name of each field of a body, whose value take reads. An empty body has no fields; any
// other must be an object, which rule says. A *Problem if a field is there twice.
func eachField(in *json.Decoder, rule string, take func(name string) error) error {
	open, err := in.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return Unprocessable("body", rule)
	}
	seen := map[string]bool{}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		name := token.(string) // a decoder takes nothing else for the name of a field
		if seen[name] {
			return twice(name)
		}
		seen[name] = true
		if err := take(name); err != nil {
			return err
		}
	}
	if _, err := in.Token(); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return Malformed("body: there is something after the end of the JSON object")
	}
	return nil
}

// eachItem calls take with each item of a list, which stands at a place of the body.
func eachItem(in *json.Decoder, at string, take func(i int, raw json.RawMessage) error) error {
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		if err == nil {
			err = Unprocessable(at, "expected array")
		}
		return err
	}
	for i := 0; in.More(); i++ {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return err
		}
		if err := take(i, raw); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

// skip reads a value that nobody wants, and calls read when a part of it was read. A *Problem if it is too deep.
func skip(in *json.Decoder, read func()) error {
	for level := 0; ; {
		token, err := in.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		if read(); level == 0 {
			return nil
		}
		if level > maxBodyDepth {
			return tooDeep("body")
		}
	}
}

// Item returns an item that stands at a place of a body, and adds to warnings the fields that it does not know. A
// *Problem if it is not what the schema of T says.
func (l *ListReader[T]) Item(at string, raw json.RawMessage, warnings *Warnings) (item T, err error) {
	if broken := checkShape("body."+at, raw, maxBodyDepth-2, l.values); broken != nil {
		return item, broken
	}
	raw, broken := checkNames(l.schemas, l.schema, at, raw, warnings)
	if broken != nil {
		return item, broken
	}
	return l.item("body."+at, raw)
}

func (l *ListReader[T]) item(at string, raw json.RawMessage) (item T, err error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return item, err
	}
	var broken huma.ValidateResult
	huma.Validate(l.schemas, l.schema, huma.NewPathBuffer([]byte(at), len(at)), huma.ModeWriteToServer, value, &broken)
	if len(broken.Errors) > 0 {
		return item, newProblem(codeInvalid, violations(explain(l.schemas, at, l.schema, broken.Errors)))
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return item, newProblem(codeInvalid, violation(&huma.ErrorDetail{Location: at, Message: err.Error()}))
	}
	return item, nil
}
