package files_test

import (
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// This counts the statements for a file, from its upload until words and vectors find it, and those for a search.
func TestAFileAndASearchTakeFewStatements(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	endpoint := e.Endpoint(t)
	pool := dbtest.Pool(t)
	fx := newIdleFixtureOn(t, pool, dbtest.NewOrg(t, pool), files.Options{Endpoint: endpoint})
	endpoint.Use(fx.space(e, "fake"))
	fx.work(files.Queues())
	folder := fx.folder("f")
	// This also runs the statements that a server sends only once.
	fx.send(folder, "first.txt", manyLines(600), files.Suffix)
	fx.idle()
	dbtest.AtMost(t, 29, "a small file", dbtest.Sent(t, fx.pool, func() {
		fx.send(folder, "small.txt", manyLines(600), files.Suffix)
		fx.idle()
	}))
	agent := fx.agentWith(folder)
	fx.find(agent, "line")
	dbtest.AtMost(t, 6, "a search", dbtest.Sent(t, fx.pool, func() { fx.find(agent, "line") }))
}
