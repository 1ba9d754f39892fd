// Package scale sets how long the property and chaos tests run: briefly in `make test`, longer in `make verify-all`.
// Tests that start the program as a process do not run in `make test`; see Long.
//
// Each file uses only the files named before it: norace.go and race.go say whether the race detector runs, and scale.go
// has all else.
package scale

import (
	"fmt"
	"os"
	"testing"
)

// Of returns the number for the scale in LOCI_TEST_SCALE: test (the default) or long. It panics for any other name, so
// that a misspelt scale does not go unnoticed.
func Of(test, long int) int {
	switch name := os.Getenv("LOCI_TEST_SCALE"); name {
	case "", "test":
		return test
	case "long":
		return long
	default:
		panic(fmt.Sprintf("LOCI_TEST_SCALE is %q; it must be test or long", name))
	}
}

// Long marks a test that starts the program as a process and has no short form. `make test` and runs with the race
// detector skip it; `make verify-all` runs it.
func Long(t testing.TB) {
	t.Helper()
	if Of(0, 1) == 0 {
		t.Skip("it takes long: make verify-all runs it, as does LOCI_TEST_SCALE=long")
	}
}

// Pure is Of for a test of code without goroutines. With the race detector it returns a tenth of the number, because
// the detector finds nothing there and slows the test down more than tenfold.
func Pure(test, long int) int {
	n := Of(test, long)
	if raced {
		return max(n/10, 1)
	}
	return n
}

// NotRaced marks a long test in which the race detector would find nothing that it does not find in shorter ones. Such
// a test does one thing after another, or runs a program that was built without the race detector. Runs with the race
// detector skip it; `make test` runs it.
func NotRaced(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("it shows the race detector nothing new, and takes long with it")
	}
}
