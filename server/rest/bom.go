package rest

import (
	"bufio"
	"io"
)

// withoutBOM returns a reader that skips a byte order mark at the beginning of a text.
func withoutBOM(text io.Reader) io.Reader {
	in := bufio.NewReader(text)
	if first, _ := in.Peek(len(byteOrderMark)); string(first) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // Peek has read these bytes
	}
	return in
}

const byteOrderMark = "\uFEFF"
