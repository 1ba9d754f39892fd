// Package scale sets how long the property and chaos tests run: briefly in `make test`, longer in `make verify` and
// longest in `make verify-all`.
package scale

import (
	"fmt"
	"os"
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
