package rest

import (
	"cmp"
	"fmt"
	"io"
)

// maxTextBytes bounds a text or a number of a JSON body, as it is written there. No text that is stored has more than
// half of that. A decoder holds each several times.
const maxTextBytes = 32 << 20

// jsonCount counts what a JSON text has while it arrives, whether it is valid or not.
type jsonCount struct {
	values          int // about, since it was set to 0
	text            int // bytes since the last quotation mark, comma or opening bracket that counts
	quoted, escaped bool

	mostDecoded int    // bytes that a text may have once it is read; 0 leaves it to maxTextBytes
	place       string // in the body, of the texts that are counted; empty for the body
	decoded     int    // bytes of the text so far, at least
	digits      int    // of an escape that are to come
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

// boundedTexts reads a JSON text, and fails with a *Problem where a text in it is too long. What is read then is lost.
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
