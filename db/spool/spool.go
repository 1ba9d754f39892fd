// Package spool keeps large data outside memory, in temporary files that are gone when their process ends.
package spool

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
)

// Name is the name pattern of the temporary files. Sweep finds them by it.
const Name = "loci-spool-*"

// Spool holds bytes that are written first and then read, as often as needed. Few bytes stay in memory, more go to a
// temporary file. The file has no name, so that the system deletes it when the process ends in any way. The zero value
// is an empty Spool that uses a file from its first byte on. The owner closes a Spool.
type Spool struct {
	Dir    string // directory of the file; empty: the system's temporary directory
	Memory int    // most bytes that are kept without a file

	memory []byte
	file   *os.File // nil while all bytes are in memory
	size   int64
}

// Write implements io.Writer. An error of the file is a *fs.PathError.
func (s *Spool) Write(p []byte) (int, error) {
	if s.file == nil && len(s.memory)+len(p) <= s.Memory {
		s.memory = append(s.memory, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	file, err := s.File()
	if err != nil {
		return 0, err
	}
	n, err := file.WriteAt(p, s.size)
	s.size += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom. An error of the file is a *fs.PathError; any other error is the reader's.
func (s *Spool) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{r}) // in pieces of io.Copy's own size
}

// ReadAt implements io.ReaderAt.
func (s *Spool) ReadAt(p []byte, at int64) (int, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory).ReadAt(p, at)
	}
	return s.file.ReadAt(p, at)
}

// Size returns the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Reader returns a reader of all bytes written so far.
func (s *Spool) Reader() *io.SectionReader { return io.NewSectionReader(s, 0, s.size) }

// File returns the file, positioned at its beginning. It creates the file if all bytes are in memory. The Spool still
// owns the file.
func (s *Spool) File() (*os.File, error) {
	if s.file != nil {
		return s.file, nil
	}
	file, err := os.CreateTemp(s.Dir, Name)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // if this fails, Close tries again
	s.file = file
	_, err = file.WriteAt(s.memory, 0)
	s.memory = nil
	return s.file, err
}

// Close frees the memory and deletes the file.
func (s *Spool) Close() {
	s.memory = nil
	if s.file != nil {
		_ = s.file.Close()           // nobody reads it any longer
		_ = os.Remove(s.file.Name()) // for systems where an open file keeps its name
	}
}

// Sweep removes files that were left by processes killed between creating a file and removing its name.
func Sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(cmp.Or(dir, os.TempDir()), Name)) // fails only for a bad pattern
	for _, name := range left {
		_ = os.RemoveAll(name) // the file may be another user's
	}
}
