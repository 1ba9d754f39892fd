package file

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Backlog counts an organization's memory files that wait for vectors, and the parts of files that have a vector or
// were refused one.
func (s *Store) Backlog(ctx context.Context, org db.Org) (endpoint.Backlog, error) {
	space, _ := s.search.Endpoint.Space()
	return db.One[endpoint.Backlog](ctx, s.db, `
		SELECT count(*) FILTER (WHERE w.unembedded) AS waiting,
		       (SELECT count(*) FROM memory_file_vectors v WHERE v.org = $1 AND v.space_id = $2) AS embedded,
		       coalesce(sum(cardinality(w.refused_chunks)), 0) AS refused
		FROM memory_files w JOIN memory_trees t ON t.org = w.org AND t.key = w.tree_key
		WHERE w.org = $1 AND w.deleted_at IS NULL AND t.embedded_space = $2`, org, space.ID)
}
