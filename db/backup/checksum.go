package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// checksumBytes are the bytes of the end of a file.
const checksumBytes = 8 + sha256.Size

// checksumOf returns the end of a file: a frame that zstd skips, of the sum of all bytes before it.
func checksumOf(sum hash.Hash) []byte {
	return append([]byte{0x50, 0x2a, 0x4d, 0x18, sha256.Size, 0, 0, 0}, sum.Sum(nil)...)
}

// summed reads a file without its end, and sums the bytes.
type summed struct {
	from io.Reader
	sum  hash.Hash
	held []byte // read, and not returned
	end  bool   // of the file
}

func newSummed(from io.Reader) *summed { return &summed{from: from, sum: sha256.New()} }

// Read implements io.Reader.
func (s *summed) Read(into []byte) (int, error) {
	for len(s.held) <= checksumBytes && !s.end {
		piece := make([]byte, 64<<10)
		n, err := s.from.Read(piece)
		s.held = append(s.held, piece[:n]...)
		if s.end = errors.Is(err, io.EOF); err != nil && !s.end {
			return 0, err
		}
	}
	ready := len(s.held) - checksumBytes
	if ready <= 0 {
		return 0, io.EOF
	}
	n := copy(into, s.held[:ready])
	s.sum.Write(into[:n])
	s.held = s.held[n:]
	return n, nil
}

// whole reports whether the file, which is read to its end, ends with the sum of its bytes.
func (s *summed) whole() bool { return s.end && bytes.Equal(s.held, checksumOf(s.sum)) }
