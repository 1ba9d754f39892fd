package archival

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Backlog counts an organization's passages that wait for a vector, have one, or were refused one.
func (s *Store) Backlog(ctx context.Context, org db.Org) (endpoint.Backlog, error) {
	space, _ := s.endpoint.Space()
	return db.One[endpoint.Backlog](ctx, s.db, `
		SELECT (SELECT count(*) FROM unembedded_passages u JOIN archives c ON c.org = u.org AND c.key = u.archive_key
		        WHERE u.org = $1 AND u.refused IS NULL AND c.embedded_space = $2 AND c.deleted_at IS NULL) AS waiting,
		       (SELECT count(*) FROM passage_vectors WHERE org = $1 AND space_id = $2) AS embedded,
		       (SELECT count(*) FROM unembedded_passages u JOIN archives c ON c.org = u.org AND c.key = u.archive_key
		        WHERE u.org = $1 AND u.refused IS NOT NULL AND c.embedded_space = $2 AND c.deleted_at IS NULL) AS refused`,
		org, space.ID)
}
