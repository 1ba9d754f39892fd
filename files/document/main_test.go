package document_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

// reader keeps what it compiles for all tests.
var reader document.Readers

// What is compiled is kept from one run of the tests to the next.
func TestMain(m *testing.M) {
	// The default spends a tenth of the processor time on small heaps; the limit is for the large ones.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(400 << 20)
	reader = documenttest.Readers()
	os.Exit(m.Run())
}
