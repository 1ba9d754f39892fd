package dbtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"

	"github.com/loci-memory/loci/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// This test logs on which Postgres the tests of this machine run. It fails if a Docker engine answers but the tests do
// not use it.
func TestPostgresOfTheTests(t *testing.T) {
	pool, _ := dbtest.Org(t)
	var version string
	if err := pool.QueryRow(t.Context(), `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	kind := dbtest.Postgres(t)
	t.Logf("the tests run on %s, version %s", kind, version)
	if os.Getenv("LOCI_TEST_DATABASE_URL") == "" && dockerAnswers(t) && !strings.HasPrefix(kind, "a container") {
		t.Errorf("a Docker engine answers, but the tests run on %s", kind)
	}
}

// dockerAnswers reports whether testcontainers finds a Docker engine. testcontainers panics if it cannot reach one.
func dockerAnswers(t *testing.T) (answers bool) {
	defer func() {
		if recover() != nil {
			answers = false
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return false
	}
	defer provider.Close()
	return provider.Health(t.Context()) == nil
}
