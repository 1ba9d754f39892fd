package document

import (
	"cmp"
	"os"
	"path/filepath"
)

// SpoolName is the pattern of the names of spools and of other temporary files, by which SweepSpools finds them.
const SpoolName = "loci-spool-*"

// Spool is a temporary file without a name: the system deletes it when the process ends, however it ends.
type Spool struct{ *os.File }

// NewSpool creates an empty Spool in a directory; an empty name means the system's temporary directory.
func NewSpool(dir string) (Spool, error) {
	file, err := os.CreateTemp(dir, SpoolName)
	if err != nil {
		return Spool{}, err
	}
	_ = os.Remove(file.Name()) // Close tries again
	return Spool{file}, nil
}

// Close closes and deletes the file.
func (s Spool) Close() {
	_ = s.File.Close()      // nobody reads it any longer
	_ = os.Remove(s.Name()) // on systems where an open file keeps its name
}

// SweepSpools removes files of processes that were killed between creating a file and removing its name.
func SweepSpools(dir string) {
	left, _ := filepath.Glob(filepath.Join(cmp.Or(dir, os.TempDir()), SpoolName)) // fails only for a bad pattern
	for _, name := range left {
		_ = os.RemoveAll(name) // it may be another user's
	}
}
