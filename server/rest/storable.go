package rest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// isStorable reports whether Postgres can hold the text of a JSON string: the text is UTF-8 without a NUL and without
// half a surrogate pair.
func isStorable(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	high := false // the last escape was a surrogate that needs its second half
	for position := bytes.IndexByte(text, '\\'); position >= 0 && position < len(text); {
		size := 2
		unit := rune(-1)
		if text[position+1] == 'u' {
			n, _ := strconv.ParseUint(string(text[position+2:position+6]), 16, 16) // the text is valid
			size, unit = 6, rune(n)
		}
		isLow := utf16.IsSurrogate(unit) && unit >= 0xdc00
		if unit == 0 || high != isLow {
			return false
		}
		high = utf16.IsSurrogate(unit) && !isLow
		next := bytes.IndexByte(text[position+size:], '\\')
		if high && next != 0 {
			return false
		}
		if position += size + next; next < 0 {
			break
		}
	}
	return true
}

// said are the fields of bodies that hold texts of models, tools and people. Such texts are always stored.
var said = []string{"messages", "input", "response", "request_messages", "response_dict"}

// written are the fields of bodies that hold arguments of tools as a model wrote them. Their operation says in a result
// what is wrong with them.
var written = []string{"args"}

func isWritten(place string) bool { return slices.Contains(written, place) }

// isSaid reports whether the text at a place in a body comes from a model, a tool or a person. Names and ids of
// messages do not.
func isSaid(place string) bool {
	field, rest, _ := strings.Cut(place, ".")
	field, _, _ = strings.Cut(field, "[")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	isName := name == "otid" || rest == name && (strings.HasSuffix(name, "id") || name == "name")
	return slices.Contains(said, field) && !isName
}
