package rest

import (
	"bufio"
	"io"
)

// withoutBOM returns a reader of a text without the byte order mark that it may begin with.
func withoutBOM(text io.Reader) io.Reader {
	in := bufio.NewReader(text)
	if first, _ := in.Peek(len(byteOrderMark)); string(first) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it was read already
	}
	return in
}

const byteOrderMark = "\uFEFF"
