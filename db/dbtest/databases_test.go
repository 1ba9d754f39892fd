package dbtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// CONTRIBUTING.md lists the tests that have a database of their own, with the same reasons, and each of these tests
// exists.
func TestDatabasesAreListed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| `(Test\\w+)` \\| (.+) \\|$").FindAllStringSubmatch(
		string(text), -1) {
		pkg, name, reason := row[1], row[2], row[3]
		listed[name] = reason
		if databases[name] != reason {
			t.Errorf("CONTRIBUTING.md says of %s %q, and databases.go %q", name, reason, databases[name])
		}
		// #nosec G204 -- the names are those of a document of the repository
		out, err := exec.CommandContext(t.Context(), "grep", "-rl", "^func "+name+"(", "../../"+pkg).Output()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "_test.go") {
			t.Errorf("%s has no test %s: %v", pkg, name, err)
		}
	}
	for name := range databases {
		if listed[name] == "" {
			t.Errorf("CONTRIBUTING.md does not list %s", name)
		}
	}
	if len(databases) > 41 {
		t.Errorf("%d tests have a database of their own; let some share one", len(databases))
	}
}
