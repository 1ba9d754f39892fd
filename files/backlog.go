package files

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Backlog counts an organization's chunks that wait for a vector, have one, or were refused one.
func (s *Store) Backlog(ctx context.Context, org db.Org) (endpoint.Backlog, error) {
	return db.One[endpoint.Backlog](ctx, s.db, `
		SELECT (SELECT coalesce(sum(end_ordinal - first_ordinal), 0) FROM embed_batches
		        WHERE org = $1 AND space_id = $2) AS waiting,
		       (SELECT count(*) FROM chunk_vectors WHERE org = $1 AND space_id = $2) AS embedded,
		       (SELECT coalesce(sum(chunks), 0) FROM embed_refusals WHERE org = $1 AND space_id = $2) AS refused`,
		org, s.space())
}
