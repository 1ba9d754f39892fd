package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Backlog counts an organization's messages by the state of their vectors.
func (s *Store) Backlog(ctx context.Context, org db.Org) (endpoint.Backlog, error) {
	space, _ := s.search.Endpoint.Space()
	return db.One[endpoint.Backlog](ctx, s.db, `
		SELECT (SELECT coalesce(sum(messages - embedded), 0) FROM conversations
		        WHERE org = $1 AND unembedded AND deleted_at IS NULL AND coalesce(embedded_space, $2) = $2) AS waiting,
		       (SELECT count(*) FROM message_vectors WHERE org = $1 AND space_id = $2) AS embedded,
		       (SELECT coalesce(sum(embed_refused), 0) FROM conversations
		        WHERE org = $1 AND embedded_space = $2 AND deleted_at IS NULL) AS refused`, org, space.ID)
}
