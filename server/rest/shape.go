package rest

import (
	"fmt"
)

// Bounds of a request's JSON body.
const (
	maxBodyBytes = 1 << 20 // of operations that do not stream their body
	maxBodyDepth = 100     // levels of nested objects and arrays

	maxBodyValues = 50_000  // JSON values in a body or in an item of a list; each takes some hundred bytes of memory
	maxItemValues = 500_000 // JSON values in an item of a list that is read item by item
)

func tooDeep(at string) *Problem {
	return Unprocessable(at, fmt.Sprintf("expected at most %d levels of nesting", maxBodyDepth))
}

// checkShape returns a *Problem if a JSON text has too many levels of objects and arrays, or too many values. place is
// the place of the text in the body.
func checkShape(place string, text []byte, deepest, maxValues int) *Problem {
	switch depth, values := shape(text); {
	case depth > deepest:
		return tooDeep(place)
	case values > maxValues:
		return tooManyValues(place, maxValues)
	}
	return nil
}

func tooManyValues(at string, most int) *Problem {
	return Unprocessable(at, fmt.Sprintf("expected at most %d values", most))
}

// shape returns how many levels of objects and arrays a JSON text has, and how many values.
func shape(text []byte) (deepest, values int) {
	level, quoted := 0, false
	values = 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == ',':
			values++
		case c == '{' || c == '[':
			level++
			values++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest, values
}
