package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// checksumBytes is the length of a file's last frame.
const checksumBytes = 8 + sha256.Size

// checksumOf returns the last frame of a file, which zstd skips. It holds sum, the checksum of all bytes before the
// frame.
func checksumOf(sum hash.Hash) []byte {
	return append([]byte{0x50, 0x2a, 0x4d, 0x18, sha256.Size, 0, 0, 0}, sum.Sum(nil)...)
}

// summed reads a file except its last frame, and sums the bytes.
type summed struct {
	from io.Reader
	sum  hash.Hash
	held []byte // bytes read but not yet returned
	end  bool   // the file was read to its end
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

// whole reports whether the file was read to its end, and its last frame holds the sum of the bytes before.
func (s *summed) whole() bool { return s.end && bytes.Equal(s.held, checksumOf(s.sum)) }
