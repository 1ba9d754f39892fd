package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
)

// decode reads one JSON object into a struct. It refuses unknown and repeated fields, and names that differ in case;
// encoding/json would accept these and keep only one of two values.
func decode(raw []byte, target any) error {
	if err := exactNames(raw, target); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(target)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
		return fmt.Errorf("got %s", kindOf(wrong.Value))
	} else if ok {
		return fmt.Errorf("%s cannot be %s", wrong.Field, kindOf(wrong.Value))
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return errors.New("there is more than one object")
	}
	return nil
}

// exactNames returns an error if an object has an unknown or a repeated field. It returns nil for anything but an
// object; decode refuses that otherwise.
func exactNames(raw []byte, target any) error {
	if !json.Valid(raw) || kindIn(raw) != '{' {
		return nil
	}
	var known []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(target).Elem()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known = append(known, name)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the brace
	seen := map[string]bool{}
	for d.More() {
		token, _ := d.Token() // the JSON is valid
		name, _ := token.(string)
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("unknown field %q", db.Short(name))
		case seen[name]:
			return fmt.Errorf("the field %q is there twice", name)
		}
		seen[name] = true
		_ = d.Decode(new(json.RawMessage)) // the JSON is valid
	}
	return nil
}

// kindIn returns the first byte of a JSON value; 0 if there is none.
func kindIn(raw []byte) byte {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// kindOf describes a value in words. value is its name in json.UnmarshalTypeError.
func kindOf(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "number":
		return "a number"
	}
	if number, ok := strings.CutPrefix(value, "number "); ok {
		return "the number " + number
	}
	return value
}

// withoutNull refuses settings that are null, and lists that contain a null, because these say nothing.
func withoutNull(settings []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(settings, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var list []json.RawMessage
		if string(fields[name]) == "null" {
			return fmt.Errorf("%s cannot be null; leave it out", name)
		}
		if json.Unmarshal(fields[name], &list) != nil {
			continue
		}
		if i := slices.IndexFunc(list, func(item json.RawMessage) bool { return string(item) == "null" }); i >= 0 {
			return fmt.Errorf("%s[%d] cannot be null", name, i)
		}
	}
	return nil
}

// decimal writes a number without an exponent.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// float reads a bound from a tag; without is the value for an absent tag. A test checks the tags.
func float(text string, without float64) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return without
	}
	return n
}
