package dbtest_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/loci-memory/loci/db/dbtest"
)

// Values held by a parallel test's cleanups are collected while other tests run.
func TestCleanupsAreForgotten(t *testing.T) {
	t.Parallel()
	var held weak.Pointer[[]byte]
	t.Cleanup(func() { // runs after the parallel test and before the program ends
		runtime.GC()
		if held.Value() != nil {
			t.Error("what the cleanup of an ended test held is in memory")
		}
	})
	t.Run("parallel", func(t *testing.T) {
		t.Parallel()
		dbtest.Org(t)
		server := new(make([]byte, 1<<20))
		held = weak.Make(server)
		t.Cleanup(func() { clear(*server) })
	})
}
