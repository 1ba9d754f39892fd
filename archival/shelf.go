package archival

import (
	"errors"
	"fmt"
	"os"
)

// shelfBytes is how much a shelf keeps in memory.
const shelfBytes = 1 << 20

// spoolName is the pattern of a shelf's file, as of an upload's: what a server leaves that is killed in the moment between making one and taking
// its name away, the next one removes.
const spoolName = "loci-spool-*"

// shelf keeps what is written to it: in memory while it is little, else in a file without a name, which goes with the process.
type shelf struct {
	memory []byte
	file   *os.File
	size   int64
}

// Write implements io.Writer.
func (s *shelf) Write(p []byte) (int, error) {
	if s.file == nil && len(s.memory)+len(p) <= shelfBytes {
		s.memory = append(s.memory, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	if s.file == nil {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

func (s *shelf) spill() error {
	file, err := os.CreateTemp("", spoolName)
	if err != nil {
		return fmt.Errorf("put passages aside: %w", err)
	}
	_ = os.Remove(file.Name()) // tried again when it is closed
	s.file = file
	_, err = file.Write(s.memory)
	s.memory = nil
	return err
}

// ReadAt implements io.ReaderAt.
func (s *shelf) ReadAt(p []byte, at int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, at)
	}
	if n := copy(p, s.memory[min(at, s.size):]); n < len(p) {
		return n, errors.New("a shelf is read past its end")
	}
	return len(p), nil
}

// close lets go of the file. Nothing is lost that an error could tell of.
func (s *shelf) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // where an open file keeps its name
	}
}
