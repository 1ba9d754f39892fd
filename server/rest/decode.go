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
	values   int // JSON values that an item may have
}

// NewListReader returns a reader for the list in a property of a body. Each item is checked against the schema of T.
func NewListReader[T any](a *API, property string) *ListReader[T] {
	return &ListReader[T]{property, a.OpenAPI().Components.Schemas, SchemaOf[T](a), maxBodyValues}
}

// Large returns a reader that allows maxItemValues JSON values in an item, enough for an agent with its history.
func (l *ListReader[T]) Large() *ListReader[T] {
	large := *l
	large.values = maxItemValues
	return &large
}

// Items yields the items of a body's list. It adds warnings for unknown fields. An error is the last thing that Items
// yields.
func (l *ListReader[T]) Items(body io.Reader, warnings *Warnings) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		more := true
		err := l.object(json.NewDecoder(&boundedTexts{Reader: withoutBOM(body)}), warnings, func(item T) bool {
			more = yield(item, nil)
			return more
		})
		if err != nil && more {
			var empty T
			yield(empty, bodyError(err))
		}
	}
}

// bodyError turns an error of reading a body into a *Problem; it keeps *Problem and *http.MaxBytesError.
func bodyError(err error) error {
	_, isProblem := errors.AsType[*Problem](err)
	_, limit := errors.AsType[*http.MaxBytesError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	mismatch, unfit := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isProblem || limit:
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

// errEnough ends the reading of a body after the consumer has stopped.
var errEnough = errors.New("enough")

// object calls take with the items of the list until take returns false.
func (l *ListReader[T]) object(decoder *json.Decoder, warnings *Warnings, take func(T) bool) error {
	found := false
	err := eachField(decoder, "expected object", func(name string) error {
		if name != l.property {
			warnings.addUnknown("field", name, []string{l.property})
			return skip(decoder, func() {})
		}
		found = true
		return eachItem(decoder, "body."+name, func(i int, raw json.RawMessage) error {
			place := fmt.Sprintf("%s[%d]", name, i)
			item, err := l.Item(place, raw, warnings)
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

// eachField calls take with the name of each field of a body; take reads the field's value. An empty body has no
// fields. If the body is no object, the error is a *Problem with the text of rule. A *Problem if a field is there
// twice.
func eachField(decoder *json.Decoder, rule string, take func(name string) error) error {
	open, err := decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return Unprocessable("body", rule)
	}
	names := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name := token.(string) // a decoder returns nothing but a string for a field's name
		if names[name] {
			return twice(name)
		}
		names[name] = true
		if err := take(name); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Malformed("body: there is something after the end of the JSON object")
	}
	return nil
}

// eachItem calls take with each item of a list. place is the list's place in the body, for errors.
func eachItem(decoder *json.Decoder, place string, take func(i int, raw json.RawMessage) error) error {
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		if err == nil {
			err = Unprocessable(place, "expected array")
		}
		return err
	}
	for i := 0; decoder.More(); i++ {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := take(i, raw); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// skip reads past a value, and calls read after each token. A *Problem if the value is nested too deeply.
func skip(decoder *json.Decoder, read func()) error {
	for level := 0; ; {
		token, err := decoder.Token()
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

// Item decodes an item, and adds warnings for unknown fields. place is the item's place in the body, for errors. A
// *Problem if the item breaks the schema of T.
func (l *ListReader[T]) Item(place string, raw json.RawMessage, warnings *Warnings) (item T, err error) {
	if problem := checkShape("body."+place, raw, maxBodyDepth-2, l.values); problem != nil {
		return item, problem
	}
	raw, problem := checkNames(l.schemas, l.schema, place, raw, warnings)
	if problem != nil {
		return item, problem
	}
	return l.item("body."+place, raw)
}

func (l *ListReader[T]) item(place string, raw json.RawMessage) (item T, err error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return item, err
	}
	var result huma.ValidateResult
	huma.Validate(l.schemas, l.schema, huma.NewPathBuffer([]byte(place), len(place)), huma.ModeWriteToServer, value,
		&result)
	if len(result.Errors) > 0 {
		return item, newProblem(codeInvalid, violations(explain(l.schemas, place, l.schema, result.Errors)))
	}
	if err := json.Unmarshal(raw, &item); err != nil {
		return item, newProblem(codeInvalid, violation(&huma.ErrorDetail{Location: place, Message: err.Error()}))
	}
	return item, nil
}
