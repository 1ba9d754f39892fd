package rest

import (
	"cmp"
	"fmt"
	"io"
)

// maxTextBytes bounds each text or number in a JSON body, as written with its escapes. Texts that can be stored have at
// most half as many bytes. A decoder holds several copies of each text.
const maxTextBytes = 32 << 20

// jsonCount counts the values and bytes of a JSON text while it arrives, valid or not.
type jsonCount struct {
	values          int // approximate number of values since it was set to 0
	text            int // bytes since the last quotation mark, comma or opening bracket outside of a string
	quoted, escaped bool

	mostDecoded int    // bytes that a text may have after decoding; 0 applies only maxTextBytes
	place       string // place of the counted texts in the body, for errors; empty means the body
	decoded     int    // decoded bytes of the current text, at least
	digits      int    // hexadecimal digits that the current escape still needs
}

// count counts a part of the JSON text. A *Problem if a text in it is too long.
func (r *jsonCount) count(part []byte) error {
	for _, c := range part {
		if r.text++; r.text > maxTextBytes {
			return Unprocessable("body", fmt.Sprintf("expected texts and numbers of at most %d bytes", maxTextBytes))
		}
		switch {
		case r.digits > 0:
			r.digits--
		case r.escaped:
			r.escaped = false
			r.decoded++
			if c == 'u' {
				r.digits = 4
			}
		case r.quoted && c == '\\':
			r.escaped = true
		case c == '"':
			r.quoted, r.text, r.decoded = !r.quoted, 0, 0
		case !r.quoted && (c == ',' || c == '{' || c == '['):
			r.values++
			r.text = 0
		case r.quoted:
			r.decoded++
		}
		if r.mostDecoded > 0 && r.decoded > r.mostDecoded {
			return Unprocessable(cmp.Or(r.place, "body"), fmt.Sprintf("a text in it may have at most %d bytes", r.mostDecoded))
		}
	}
	return nil
}

// boundedTexts reads a JSON text. It fails with a *Problem at a text that is too long, and drops the bytes of that
// read.
type boundedTexts struct {
	io.Reader
	jsonCount
}

func (r *boundedTexts) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	if tooLong := r.count(into[:n]); tooLong != nil {
		return 0, tooLong
	}
	return n, err
}
