package files_test

import (
	"testing"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// newDenseWorld is a world whose files are embedded by an endpoint.
func newDenseWorld(t testing.TB, dimension int) (*world, *embedtest.Endpoint, embed.Space) {
	t.Helper()
	e := embedtest.New(t, dimension)
	w, space := newWorldOn(t, e, e.Endpoint(t), files.Queues())
	return w, e, space
}

// newWorldOn is one whose files are embedded by the endpoint, by workers as the queues say.
func newWorldOn(t testing.TB, e *embedtest.Endpoint, endpoint *embed.Endpoint, queues map[string]river.QueueConfig) (*world, embed.Space) {
	t.Helper()
	w := newWorldOf(t, files.Options{Endpoint: endpoint}, queues)
	return w, e.Use(t, w.pool, endpoint)
}
