package recall

import (
	"context"
	"iter"
	"strings"

	"github.com/loci-memory/loci/db"
)

// text is a text to expand. Ranging over pieces reads it.
type text struct {
	bytes  int64                    // approximate size, from what is stored
	pieces iter.Seq2[string, error] // each piece has whole lines, except a text's only piece; an error is the last item
}

// onePiece returns a text that is read in one piece.
func onePiece(bytes int64, read func() (string, error)) text {
	return text{bytes: bytes, pieces: func(yield func(string, error) bool) { yield(read()) }}
}

// hold waits until the text may be read. The caller calls release when it no longer needs the text.
func (s *Store) hold(ctx context.Context, org db.Org, t text) (release func(), err error) {
	if t.bytes <= freeTextBytes {
		return func() {}, nil
	}
	bytes := min(t.bytes, maxWholeBytes)
	if err := s.texts.Take(ctx, org, bytes); err != nil {
		return nil, err
	}
	return func() { s.texts.Give(org, bytes) }, nil
}

// whole returns the text. If the text has several pieces, it refuses more than maxWholeBytes.
func (t text) whole() (string, error) {
	var first string
	var b strings.Builder
	for piece, err := range t.pieces {
		switch {
		case err != nil:
			return "", err
		case first == "":
			first = piece
			continue
		case b.Len() == 0:
			b.Grow(int(t.bytes) + len(first))
			b.WriteString(first)
		}
		if b.Len()+len(piece) > maxWholeBytes {
			return "", db.Invalid("the text of the range has more than %d bytes: ask for a part of it", maxWholeBytes)
		}
		b.WriteString(piece)
	}
	if b.Len() == 0 {
		return first, nil
	}
	return b.String(), nil
}
