package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Bounds for the files of a package. A knot is a set of files that all need each other. An arrow goes up if a file uses
// one that the package comment names later. See tools/filegraph.
const (
	mostLines = 450 // lines of a file
	mostKnot  = 12
	mostUp    = 15
)

// The files of a package can be read in the order in which the package comment names them.
func TestFilesStandInOrder(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./filegraph", "-C", "..", "./...")
	// Without CGO, the packages that make test has compiled are reused. Memory is cheaper than garbage collection.
	cmd.Dir, cmd.Env = "../../tools", append(os.Environ(), "CGO_ENABLED=0", "GOGC=400")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("filegraph: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")[1:]
	if len(lines) < 50 {
		t.Fatalf("filegraph found %d packages", len(lines))
	}
	for _, line := range lines {
		var name string
		var files, longest, knot, up, unnamed int
		if _, err := fmt.Sscan(line, &name, &files, &longest, &knot, &up, &unnamed); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if longest > mostLines || knot > mostKnot || up > mostUp || unnamed > 0 && files > 1 {
			t.Errorf("%s: the longest file has %d lines, the largest knot %d files; %d arrows go up and %d files are "+
				"not named: see tools/filegraph -v", name, longest, knot, up, unnamed)
		}
	}
}
