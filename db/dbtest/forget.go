package dbtest

import "testing"

// remembered is the number of cleanups that a test has at most.
const remembered = 24

// forget lets what the cleanups of a test hold be collected when they have run. Package testing keeps the functions of
// a parallel test, and with them for example its server, until the program ends; only later cleanups take their places.
func forget(t testing.TB) {
	t.Cleanup(func() {
		for range remembered {
			t.Cleanup(func() {})
		}
	})
}
