package document

import (
	"cmp"
	"os"
	"path/filepath"
)

// spoolName is the pattern of a spool's name.
const spoolName = "loci-spool-*"

// Spool is a temporary file without a name, so that it goes with the process whatever happens to it.
type Spool struct{ *os.File }

// NewSpool makes an empty one in a directory; an empty name is the system's.
func NewSpool(dir string) (Spool, error) {
	file, err := os.CreateTemp(dir, spoolName)
	if err != nil {
		return Spool{}, err
	}
	_ = os.Remove(file.Name()) // tried again when it is closed
	return Spool{file}, nil
}

// Close lets go of the file. Nothing is lost that an error could tell of.
func (s Spool) Close() {
	_ = s.File.Close()
	_ = os.Remove(s.Name()) // where an open file keeps its name
}

// SweepSpools removes what processes left that were killed in the moment between making a file and taking its name away. One in that
// moment now loses nothing, for its file is open.
func SweepSpools(dir string) {
	left, _ := filepath.Glob(filepath.Join(cmp.Or(dir, os.TempDir()), spoolName)) // fails for a bad pattern alone
	for _, name := range left {
		_ = os.Remove(name) // it may be another user's
	}
}
