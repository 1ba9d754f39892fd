// Package spool keeps large data outside memory, in temporary files that end with their process.
package spool

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
)

// Name is the pattern of the names of temporary files, by which Sweep finds them.
const Name = "loci-spool-*"

// Spool is bytes that are written first and then read, as often as needed: in memory as long as there are few, else in
// a temporary file. The file has no name: the system deletes it when the process ends, however it ends. The zero value
// is an empty Spool that has a file from its first byte on. Its owner closes it.
type Spool struct {
	Dir    string // of the file; empty is the system's directory for temporary files
	Memory int    // the most bytes that are kept without a file

	memory []byte
	file   *os.File // nil until there are more bytes
	size   int64
}

// Write implements io.Writer. An error is an *fs.PathError of the file.
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

// ReadFrom implements io.ReaderFrom. An *fs.PathError is of the file, any other error of the reader.
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

// Size is the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Reader returns a reader of all bytes that are there now.
func (s *Spool) Reader() *io.SectionReader { return io.NewSectionReader(s, 0, s.size) }

// File returns the file at its beginning, and makes it if all is in memory. The Spool still owns it.
func (s *Spool) File() (*os.File, error) {
	if s.file != nil {
		return s.file, nil
	}
	file, err := os.CreateTemp(s.Dir, Name)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // Close tries again
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
		_ = os.Remove(s.file.Name()) // on systems where an open file keeps its name
	}
}

// Sweep removes files of processes that were killed between creating a file and removing its name.
func Sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(cmp.Or(dir, os.TempDir()), Name)) // fails only for a bad pattern
	for _, name := range left {
		_ = os.RemoveAll(name) // it may be another user's
	}
}
