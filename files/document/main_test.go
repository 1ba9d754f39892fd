package document_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/documenttest"
)

// reader is shared by all tests, with its compiled programs.
var reader document.Readers

// Compiled programs are kept between runs of the tests.
func TestMain(m *testing.M) {
	// With the default, small heaps cost a tenth of the processor time. The limit is for large heaps.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(400 << 20)
	reader = documenttest.Readers()
	os.Exit(m.Run())
}
