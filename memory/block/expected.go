package block

import (
	"fmt"

	"github.com/loci-memory/loci/db"
)

// Expected is the version, or the SHA-256 of the value, that a block must have before a change. Empty fields require
// nothing.
type Expected struct {
	Version *int
	SHA256  string
}

// MismatchError says that a block is not as a change expects. errors.Is finds ErrConflict in it. Current is the block
// as it is.
type MismatchError struct{ Current Block }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("block %s is at version %d, with the SHA-256 %s, and not as this change expects it; the change "+
		"was not made. Its value is: %s", e.Current.ID, e.Current.Version, e.Current.SHA256(), e.Current.Value)
}

// Unwrap returns ErrConflict.
func (e *MismatchError) Unwrap() error { return db.ErrConflict }

func (x Expected) check(b Block) error {
	if x.Version != nil && *x.Version != b.Version || x.SHA256 != "" && x.SHA256 != b.SHA256() {
		return &MismatchError{Current: b}
	}
	return nil
}
