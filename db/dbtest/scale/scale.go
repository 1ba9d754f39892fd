// Package scale sets how long the property and chaos tests run: briefly in `make test`, longer in the parts of
// `make verify-all`. Tests of processes of the program do not run in `make test` at all: see Long.
//
// Each file uses those that are named before it: norace.go and race.go say whether the race detector runs, and scale.go
// has all else.
package scale

import (
	"fmt"
	"os"
	"testing"
)

// Of returns the number for the scale that LOCI_TEST_SCALE names: test (also where it is unset) or long.
// It panics on any other name, so that a misspelt scale does not run the short tests unnoticed.
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

// Long marks a test that starts the program as a process, and has no short form. `make test` skips it, and so does the
// race detector's run; `make verify-all` runs it.
func Long(t testing.TB) {
	t.Helper()
	if Of(0, 1) == 0 {
		t.Skip("it takes long: make verify-all runs it, as does LOCI_TEST_SCALE=long")
	}
}

// Pure returns the number for the scale of a test of code that has no goroutines: there the race detector finds nothing
// and slows the test down more than tenfold, so that with it there are a tenth as many cases.
func Pure(test, long int) int {
	n := Of(test, long)
	if raced {
		return max(n/10, 1)
	}
	return n
}

// NotRaced marks a long test that shows the race detector nothing that shorter ones do not: it does one thing after
// another, or looks at a program that is built without it. With the race detector it is skipped; `make test` runs it.
func NotRaced(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("it shows the race detector nothing new, and takes long with it")
	}
}
