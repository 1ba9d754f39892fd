package dbtest_test

import (
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

func TestOrganizationsShareADatabase(t *testing.T) {
	t.Parallel()
	pool, one := dbtest.Org(t)
	same, other := dbtest.Org(t)
	own := dbtest.Pool(t)
	if pool != same || one == other || own == pool {
		t.Errorf("got organizations %d and %d, one pool: %t, a pool of its own: %t", one, other, pool == same, own != pool)
	}
	for name, d := range map[string]db.DB{"the shared pool": pool, "a pool of the test's own": own} {
		n, err := db.One[int](t.Context(), d, `SELECT count(*)::integer FROM organizations WHERE org IN ($1, $2)`, one, other)
		if err != nil || n != 2 {
			t.Errorf("%s sees %d of the organizations, %v; want 2", name, n, err)
		}
	}
}

// Values made with Program outlive the test that first made them.
func TestTheProgramOutlivesItsTests(t *testing.T) {
	t.Parallel()
	ended := false
	t.Run("maker", func(*testing.T) { dbtest.Program().Cleanup(func() { ended = true }) })
	if ended {
		t.Error("a cleanup of the program ran at the end of a test")
	}
}
