package document_test

import (
	"os"
	"testing"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

// reader keeps what it compiles for all tests.
var reader document.Readers

// What is compiled is kept from one run of the tests to the next.
func TestMain(m *testing.M) {
	reader = documenttest.Readers()
	os.Exit(m.Run())
}
