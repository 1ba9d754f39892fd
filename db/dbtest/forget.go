package dbtest

import "testing"

// remembered is the largest number of cleanups of a test.
const remembered = 24

// forget lets the values that a test's cleanups hold be collected after the cleanups ran. Package testing keeps the
// functions of a parallel test, and so for example the test's server, until the program ends. Only later cleanups
// overwrite them.
func forget(t testing.TB) {
	t.Cleanup(func() {
		for range remembered {
			t.Cleanup(func() {})
		}
	})
}
