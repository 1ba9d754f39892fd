package document_test

import (
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci/files/document"
)

// reader keeps what it compiles for all tests.
var reader document.Readers

// What is compiled is kept from one run of the tests to the next.
func TestMain(m *testing.M) {
	caches, err := os.UserCacheDir()
	if err != nil {
		log.Fatal(err)
	}
	reader.CacheDir = filepath.Join(caches, "loci-test")
	os.Exit(m.Run())
}
