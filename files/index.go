package files

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// vectorTable is the table of the chunks' vectors.
const vectorTable = "chunk_vectors"

// Index builds the index of the active space's vectors where that pays and it is not there; built says that it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	return s.o.Dense.Index(ctx, pool, vectorTable, s.indexRows, func(ctx context.Context, space embed.Space) (int, error) {
		return db.One[int](ctx, pool, `
			SELECT coalesce(sum(end_ordinal - first_ordinal), 0) FROM embed_batches WHERE space_id = $1`, space.ID)
	}, progress)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and says how many.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.o.Dense.ClearUnused(ctx, pool, vectorTable, func(ctx context.Context, unused []embed.Space) error {
		for _, space := range unused {
			if _, err := pool.Exec(ctx, `DELETE FROM embed_batches WHERE space_id = $1`, space.ID); err != nil {
				return err
			}
		}
		return nil
	})
}
