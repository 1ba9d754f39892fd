package dbtest

import (
	"strings"
	"testing"
)

// databases lists the tests of make test that have a database of their own, each with the reason. All others take an
// organization of the database that their program shares. CONTRIBUTING.md has the list, too.
var databases = map[string]string{}

// checkListed fails a test that may not have a database of its own.
func checkListed(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if strings.HasPrefix(name, "Test") && databases[name] == "" {
		t.Errorf("dbtest: %s is not listed in databases.go: take an organization with dbtest.Org", name)
	}
}
