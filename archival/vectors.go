package archival

import (
	"context"

	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
)

// Vectors maps passage key → normalized vector. A passage that waits for its vector is absent; without an embeddings
// endpoint the map is nil.
func (s *Store) Vectors(ctx context.Context, org db.Org, list ...Passage) (map[int64][]float32, error) {
	space, ok := s.endpoint.Space()
	if !ok || len(list) == 0 {
		return nil, nil
	}
	keys := make([]int64, len(list))
	for i, p := range list {
		keys[i] = p.Key
	}
	type row struct {
		Key    int64               `db:"passage_key"`
		Vector pgvector.HalfVector `db:"embedding"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT passage_key, embedding FROM passage_vectors
		WHERE org = $1 AND passage_key = ANY ($2) AND space_id = $3`, org, keys, space.ID)
	vectors := make(map[int64][]float32, len(rows))
	for _, r := range rows {
		vectors[r.Key] = r.Vector.Slice()
	}
	return vectors, err
}
