package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// sealBytes are the bytes of the end of a file.
const sealBytes = 8 + sha256.Size

// sealOf returns the end of a file: a frame that zstd skips, of the sum of all bytes before it.
func sealOf(sum hash.Hash) []byte {
	return append([]byte{0x50, 0x2a, 0x4d, 0x18, sha256.Size, 0, 0, 0}, sum.Sum(nil)...)
}

// sealed reads a file without its end, and sums the bytes.
type sealed struct {
	from io.Reader
	sum  hash.Hash
	held []byte // read, and not returned
	end  bool   // of the file
}

func newSealed(from io.Reader) *sealed { return &sealed{from: from, sum: sha256.New()} }

// Read implements io.Reader.
func (s *sealed) Read(into []byte) (int, error) {
	for len(s.held) <= sealBytes && !s.end {
		piece := make([]byte, 64<<10)
		n, err := s.from.Read(piece)
		s.held = append(s.held, piece[:n]...)
		if s.end = errors.Is(err, io.EOF); err != nil && !s.end {
			return 0, err
		}
	}
	ready := len(s.held) - sealBytes
	if ready <= 0 {
		return 0, io.EOF
	}
	n := copy(into, s.held[:ready])
	s.sum.Write(into[:n])
	s.held = s.held[n:]
	return n, nil
}

// whole reports whether the file, which is read to its end, ends with the sum of its bytes.
func (s *sealed) whole() bool { return s.end && bytes.Equal(s.held, sealOf(s.sum)) }
