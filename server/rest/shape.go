package rest

import (
	"fmt"
)

// Bounds of a request's JSON body.
const (
	maxBodyBytes = 1 << 20 // of operations that are not streamed
	maxBodyDepth = 100     // of nested objects and arrays

	maxBodyValues = 50_000  // of a body or an item of a list; each takes some hundred bytes of memory
	maxItemValues = 500_000 // of an item of a list that is read item by item
)

func tooDeep(at string) *Problem {
	return Unprocessable(at, fmt.Sprintf("expected at most %d levels of nesting", maxBodyDepth))
}

// checkShape returns a *Problem for a JSON text, at a place of a body, that nests objects and arrays deeper or has more
// values than it may.
func checkShape(at string, text []byte, deepest, most int) *Problem {
	switch depth, values := shape(text); {
	case depth > deepest:
		return tooDeep(at)
	case values > most:
		return tooManyValues(at, most)
	}
	return nil
}

func tooManyValues(at string, most int) *Problem {
	return Unprocessable(at, fmt.Sprintf("expected at most %d values", most))
}

// shape returns how deep a JSON text nests objects and arrays, and how many values it has.
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
