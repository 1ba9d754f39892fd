package erase

import (
	"encoding/base64"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unescaped decodes the JSON escapes in cells. ok is false if there are none.
func unescaped(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '\\' }) {
		return cells, false
	}
	out = make([]cell, 0, len(cells))
	for i := 0; i < len(cells); i++ {
		c := cells[i]
		if c.r != '\\' || i+1 == len(cells) {
			out = append(out, c)
			continue
		}
		next := cells[i+1]
		if r, simple := simpleEscapes[next.r]; simple {
			out, ok = append(out, cell{r, c.from, next.to}), true
			i++
			continue
		}
		r, n := unicodeEscape(cells[i:])
		if n == 0 {
			out = append(out, c)
			continue
		}
		out, ok = append(out, cell{r, c.from, cells[i+n-1].to}), true
		i += n - 1
	}
	return out, ok
}

var simpleEscapes = map[rune]rune{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

// unicodeEscape decodes an escape such as \u00e9, or a pair of surrogates. n is its number of cells, 0 if there is
// none.
func unicodeEscape(cells []cell) (r rune, n int) {
	unit := func(cells []cell) (rune, bool) {
		if len(cells) < 6 || cells[0].r != '\\' || cells[1].r != 'u' {
			return 0, false
		}
		var digits []rune
		for _, c := range cells[2:6] {
			digits = append(digits, c.r)
		}
		v, err := strconv.ParseUint(string(digits), 16, 32)
		return rune(v), err == nil //nolint:gosec // four digits
	}
	first, ok := unit(cells)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(first) {
		if second, ok := unit(cells[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != unicode.ReplacementChar {
				return r, 12
			}
		}
	}
	return first, 6
}

// unframed removes what a prompt or the result of a tool adds to a text: line numbers, and the marks of tags and line
// ends. ok is false if there are none.
func unframed(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '\n' || c.r == '⏎' || c.r == '~' }) {
		return cells, false
	}
	out = make([]cell, 0, len(cells))
	for i := 0; i < len(cells); i++ {
		switch c := cells[i]; {
		case c.r == '⏎', c.r == '~' && i > 0 && strings.ContainsRune("<[＜［", cells[i-1].r):
			ok = true
		case c.r == '\n':
			out = append(out, c)
			if n := lineNumber(cells[i+1:]); n > 0 {
				i, ok = i+n, true
			}
		default:
			out = append(out, c)
		}
	}
	return out, ok
}

// lineNumber returns the number of cells of a line number such as " 12: " at the beginning, or 0.
func lineNumber(cells []cell) (n int) {
	for n < len(cells) && (cells[n].r == ' ' || cells[n].r == '>') {
		n++
	}
	digits := 0
	for n+digits < len(cells) && cells[n+digits].r >= '0' && cells[n+digits].r <= '9' {
		digits++
	}
	if n += digits; digits == 0 || n >= len(cells) || !strings.ContainsRune(":\t-|", cells[n].r) {
		return 0
	}
	return n + 1
}

// percentDecoded decodes percent-encoded UTF-8, and turns each plus sign within a word into a space, as in a URL. ok is
// false if there is none of either.
func percentDecoded(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '%' || c.r == '+' }) {
		return cells, false
	}
	out = make([]cell, 0, len(cells))
	for i := 0; i < len(cells); {
		var raw []byte
		for n := i; ; n += 3 {
			b, is := percentByte(cells[n:])
			if !is {
				break
			}
			raw = append(raw, b)
		}
		if len(raw) == 0 {
			c := cells[i]
			if c.r == '+' && i > 0 && i+1 < len(cells) && !unicode.IsSpace(cells[i-1].r) && !unicode.IsSpace(cells[i+1].r) {
				c.r, ok = ' ', true
			}
			out = append(out, c)
			i++
			continue
		}
		for ok = true; len(raw) > 0; {
			r, size := utf8.DecodeRune(raw)
			out = append(out, cell{r, cells[i].from, cells[i+3*size-1].to})
			raw, i = raw[size:], i+3*size
		}
	}
	return out, ok
}

// percentByte decodes a byte such as %C3.
func percentByte(cells []cell) (byte, bool) {
	if len(cells) < 3 || cells[0].r != '%' || cells[1].r >= utf8.RuneSelf || cells[2].r >= utf8.RuneSelf {
		return 0, false
	}
	v, err := strconv.ParseUint(string([]rune{cells[1].r, cells[2].r}), 16, 8)
	return byte(v), err == nil
}

// maxEntity is the maximum length of an HTML character reference.
const maxEntity = 32

// entitiesDecoded decodes the character references of HTML and XML, such as &quot; and &#xEB;. ok is false if there are
// none.
func entitiesDecoded(cells []cell) (out []cell, ok bool) {
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.r == '&' }) {
		return cells, false
	}
	out = make([]cell, 0, len(cells))
	for i := 0; i < len(cells); i++ {
		n := 0
		if cells[i].r == '&' {
			for n = 1; n < maxEntity && i+n < len(cells) && isEntity(cells[i+n].r); n++ {
			}
		}
		if n < 2 || i+n >= len(cells) || cells[i+n].r != ';' {
			out = append(out, cells[i])
			continue
		}
		var reference strings.Builder
		for _, c := range cells[i : i+n+1] {
			reference.WriteRune(c.r)
		}
		text := html.UnescapeString(reference.String())
		if text == reference.String() {
			out = append(out, cells[i])
			continue
		}
		for _, r := range text {
			out = append(out, cell{r, cells[i].from, cells[i+n].to})
		}
		i, ok = i+n, true
	}
	return out, ok
}

func isEntity(r rune) bool {
	return r == '#' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// minBase64 is the minimum number of base64 characters that are searched. Fewer would be found by chance.
const minBase64 = 12

// inBase64 returns how a text appears in base64, for both alphabets and for each position of the text within the
// encoded bytes. Characters at the ends that also depend on the neighboring bytes are left out.
func inBase64(text string) (all []string) {
	for _, spelling := range []string{text, norm.NFC.String(text), norm.NFD.String(text)} {
		for shift := range 3 {
			raw := append(make([]byte, shift, shift+len(spelling)), spelling...)
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				encoded := encoding.EncodeToString(raw)
				if core := encoded[(shift*8+5)/6 : len(raw)*8/6]; len(core) >= minBase64 && !slices.Contains(all, core) {
					all = append(all, core)
				}
			}
		}
	}
	return all
}
