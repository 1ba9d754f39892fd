// Package documenttest reads documents in the process of a test.
package documenttest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/files/document"
)

// Readers returns readers that keep compiled programs for later test runs, because compiling takes seconds.
func Readers() document.Readers {
	return document.Readers{CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("loci-test-%d", os.Getuid()))}
}
