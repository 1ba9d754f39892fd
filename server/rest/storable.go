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

// storable returns a *Problem for a string that cannot be stored, or warns of it if it was said.
func (b *bodyNames) storable(place string, text []byte) *Problem {
	switch {
	case isStorable(text):
		return nil
	case !isSaid(place):
		return Unprocessable("body."+place, "the text has a NUL, half of a surrogate pair, or bytes that are not UTF-8, "+
			"which cannot be stored; leave them out")
	case b.warnings != nil:
		b.warnings.add("body." + shorten(place) + " has characters that cannot be stored: ␀ is stored in place of a NUL, " +
			"and U+FFFD in place of half of a surrogate pair or of bytes that are not UTF-8")
	}
	return nil
}
