package files_test

import (
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// The statements of a file, from its upload until words and vectors find it, and of a search.
func TestAFileAndASearchTakeFewStatements(t *testing.T) {
	t.Parallel()
	fx, _, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	settle := func() {
		embedtest.Eventually(t, "the jobs are done", func() bool {
			return fx.count(`SELECT count(*) FROM river_job WHERE finalized_at IS NULL`) == 0
		})
	}
	fx.send(folder, "first.txt", manyLines(600), files.Suffix) // with what a server sends once
	settle()
	dbtest.AtMost(t, 29, "a small file", dbtest.Sent(t, fx.pool, func() {
		fx.send(folder, "small.txt", manyLines(600), files.Suffix)
		settle()
	}))
	agent := fx.agentWith(folder)
	fx.find(agent, "line")
	dbtest.AtMost(t, 6, "a search", dbtest.Sent(t, fx.pool, func() { fx.find(agent, "line") }))
}
