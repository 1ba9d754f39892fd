// Package scale sets how long the property and chaos tests run: briefly in `make test`, and longer in the parts of
// `make verify-all`, at the scale verify or at the longest, all. Some tests do not run in `make test` at all: see Long.
//
// The tests that call a function of this package are those that scripts/scaled-tests.sh prints. At their longer scales
// they run without the race detector.
package scale

import (
	"fmt"
	"os"
	"testing"
)

// Of returns the number for the scale that LOCI_TEST_SCALE names: test (also where it is unset), verify or all.
// It panics on any other name, so that a misspelt scale does not run the short tests unnoticed.
func Of(test, verify, all int) int {
	switch name := os.Getenv("LOCI_TEST_SCALE"); name {
	case "", "test":
		return test
	case "verify":
		return verify
	case "all":
		return all
	default:
		panic(fmt.Sprintf("LOCI_TEST_SCALE is %q; it must be test, verify or all", name))
	}
}

// Long marks a test that `make test` does not run, and the race detector neither: it starts the built program or kills
// processes of it, or takes long and has no short form. `make verify-all` runs it.
func Long(t testing.TB) {
	t.Helper()
	if Of(0, 1, 1) == 0 {
		t.Skip("it takes long: make verify-all runs it, as does LOCI_TEST_SCALE=verify")
	}
}

// Pure returns the number for the scale of a test of code that has no goroutines: there the race detector finds nothing
// and slows the test down more than tenfold, so that with it there are a tenth as many cases.
func Pure(test, verify, all int) int {
	n := Of(test, verify, all)
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
