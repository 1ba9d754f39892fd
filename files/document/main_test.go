package document_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// reader keeps what it compiles for all tests.
var reader document.Readers

// What is compiled is kept from one run of the tests to the next.
func TestMain(m *testing.M) {
	reader.CacheDir = filepath.Join(os.TempDir(), fmt.Sprintf("loci-test-%d", os.Getuid()))
	os.Exit(m.Run())
}
