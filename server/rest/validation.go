package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// showProblem puts huma's own errors, those of validation above all, into Letta's shape.
func showProblem(ctx huma.Context, _ string, body any) (any, error) {
	model, ok := body.(*huma.ErrorModel)
	if !ok {
		return body, nil
	}
	ctx.SetHeader("Content-Type", "application/json")
	sentences := make([]string, 0, len(model.Errors))
	for _, e := range model.Errors {
		sentences = append(sentences, violation(e))
	}
	if len(sentences) == 0 {
		sentences = append(sentences, model.Detail)
	}
	return newProblem(model.Status, strings.Join(sentences, "; ")).traced(ctx.Context()), nil
}

// violation is a broken rule in words: where, what the rule is, and what was there.
func violation(e *huma.ErrorDetail) string {
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

// exponents matches numbers as Go writes large ones.
var exponents = regexp.MustCompile(`-?\d(\.\d+)?e\+\d+`)

const maxShownBytes = 100
