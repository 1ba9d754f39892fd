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

// showProblem returns what puts huma's own errors, those of validation above all, into Letta's shape.
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

// maxViolations is the number of broken rules that an answer names.
const maxViolations = 10

// violations are broken rules in words.
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

// violation is a broken rule in words: where, what the rule is, and what was there.
func violation(e *huma.ErrorDetail) string {
	if unread := mismatched(e.Location, e.Message); unread != "" {
		return unread
	}
	switch e.Value.(type) {
	case nil, map[string]any, []any, []string:
		return e.Location + ": " + e.Message
	}
	message := exponents.ReplaceAllStringFunc(e.Message, func(number string) string {
		value, _ := strconv.ParseFloat(number, 64) // the pattern is a number's
		return strconv.FormatFloat(value, 'f', -1, 64)
	})
	shown, err := json.Marshal(e.Value)
	if err != nil {
		return e.Location + ": " + e.Message
	}
	if len(shown) > maxShownBytes {
		shown = append(bytes.ToValidUTF8(shown[:maxShownBytes], nil), "…"...)
	}
	return fmt.Sprintf("%s: %s. Got: %s", e.Location, message, shown)
}

// mismatched returns encoding/json's error of a value that does not fit its field in words without Go's types. It is
// empty for any other error.
func mismatched(location, message string) string {
	found := mismatches.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	for i, part := range strings.Split(found[2], ".") {
		if i > 0 && part != "" && strings.ToLower(part[:1]) == part[:1] { // no name of a type
			location += "." + part
		}
	}
	wanted := "object"
	switch kind := found[3]; {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		wanted = "integer"
	case strings.HasPrefix(kind, "float"):
		wanted = "number"
	case kind == "string":
		wanted = kind
	case kind == "bool":
		wanted = "boolean"
	case strings.HasPrefix(kind, "["):
		wanted = "array"
	}
	return fmt.Sprintf("%s: expected %s, got %s", location, wanted, found[1])
}

// mismatches matches the text of a json.UnmarshalTypeError: the value, the path of the field, and its type.
var mismatches = regexp.MustCompile(
	`^json: cannot unmarshal (.+) into Go (?:struct field (\S*)|value) of type (\S+)`)

// exponents matches numbers as Go writes large ones.
var exponents = regexp.MustCompile(`-?\d(\.\d+)?e\+\d+`)

const maxShownBytes = 100
