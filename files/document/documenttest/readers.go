// Package documenttest reads documents in the process of a test.
package documenttest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/files/document"
)

// Readers keep what they compile, which takes seconds, from one run of the tests to the next.
func Readers() document.Readers {
	return document.Readers{CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("loci-test-%d", os.Getuid()))}
}
