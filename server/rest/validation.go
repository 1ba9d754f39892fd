package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// showProblem returns a transformer that puts huma's own errors, mostly of validation, into Letta's shape.
func showProblem(schemas Registry) huma.Transformer {
	return func(ctx huma.Context, _ string, body any) (any, error) {
		model, ok := body.(*huma.ErrorModel)
		if !ok {
			return body, nil
		}
		ctx.SetHeader("Content-Type", "application/json")
		text := violations(explain(schemas, "body", bodySchema(ctx.Operation()), model.Errors))
		if text == "" {
			text = model.Error()
		}
		return StatusProblem(model.Status, text).traced(ctx.Context()), nil
	}
}

// maxViolations is how many broken rules an answer names.
const maxViolations = 10

// violations describes broken rules in sentences.
func violations[E error](broken []E) string {
	var sentences []string
	for i, err := range broken {
		if i == maxViolations {
			sentences = append(sentences, fmt.Sprintf("and %d more", len(broken)-i))
			break
		}
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			sentences = append(sentences, violation(detail))
		}
	}
	return strings.Join(sentences, "; ")
}

// violation describes a broken rule: the place, the rule, and the value.
func violation(e *huma.ErrorDetail) string {
	if unread := mismatched(e.Location, e.Message); unread != "" {
		return unread
	}
	switch e.Value.(type) {
	case nil, map[string]any, []any, []string:
		return e.Location + ": " + e.Message
	}
	message := exponents.ReplaceAllStringFunc(e.Message, func(number string) string {
		value, _ := strconv.ParseFloat(number, 64) // the pattern matches only numbers
		return strconv.FormatFloat(value, 'f', -1, 64)
	})
	text, err := json.Marshal(e.Value)
	if err != nil {
		return e.Location + ": " + e.Message
	}
	if len(text) > maxShownBytes {
		text = append(bytes.ToValidUTF8(text[:maxShownBytes], nil), "…"...)
	}
	return fmt.Sprintf("%s: %s. Got: %s", e.Location, message, text)
}

// mismatched rewrites encoding/json's error about a value that does not fit its field, without the names of Go's types.
// It returns "" for any other error.
func mismatched(location, message string) string {
	parts := mismatches.FindStringSubmatch(message)
	if parts == nil {
		return ""
	}
	for i, part := range strings.Split(parts[2], ".") {
		if i > 0 && part != "" && strings.ToLower(part[:1]) == part[:1] { // a type's name begins with a capital
			location += "." + part
		}
	}
	expected := "object"
	switch kind := parts[3]; {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		expected = "integer"
	case strings.HasPrefix(kind, "float"):
		expected = "number"
	case kind == "string":
		expected = kind
	case kind == "bool":
		expected = "boolean"
	case strings.HasPrefix(kind, "["):
		expected = "array"
	}
	return fmt.Sprintf("%s: expected %s, got %s", location, expected, parts[1])
}

// mismatches matches the text of a json.UnmarshalTypeError: the value, the path of the field, and the Go type.
var mismatches = regexp.MustCompile(
	`^json: cannot unmarshal (.+) into Go (?:struct field (\S*)|value) of type (\S+)`)

// exponents matches numbers in the notation that Go uses for large ones.
var exponents = regexp.MustCompile(`-?\d(\.\d+)?e\+\d+`)

const maxShownBytes = 100
