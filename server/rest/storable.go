package rest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// isStorable reports whether Postgres can hold the text of a JSON string: it has no NUL, no half of a surrogate pair,
// and is UTF-8.
func isStorable(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	high := false // a surrogate that waits for its second half
	for at := bytes.IndexByte(text, '\\'); at >= 0 && at < len(text); {
		size := 2
		unit := rune(-1)
		if text[at+1] == 'u' {
			n, _ := strconv.ParseUint(string(text[at+2:at+6]), 16, 16) // the text is valid
			size, unit = 6, rune(n)
		}
		isLow := utf16.IsSurrogate(unit) && unit >= 0xdc00
		if unit == 0 || high != isLow {
			return false
		}
		high = utf16.IsSurrogate(unit) && !isLow
		next := bytes.IndexByte(text[at+size:], '\\')
		if high && next != 0 {
			return false
		}
		if at += size + next; next < 0 {
			break
		}
	}
	return true
}

// said are the fields of bodies whose texts models, tools and people said. They are stored whatever they have.
var said = []string{"messages", "input", "response", "request_messages", "response_dict"}

// isSaid reports whether the text at a place was said, and is no name or id of a message.
func isSaid(place string) bool {
	field, rest, _ := strings.Cut(place, ".")
	field, _, _ = strings.Cut(field, "[")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	isName := name == "otid" || rest == name && (strings.HasSuffix(name, "id") || name == "name")
	return slices.Contains(said, field) && !isName
}
