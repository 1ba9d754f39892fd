package files

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Index builds the index of the active space's vectors if it pays and is missing; built reports whether it did.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	return s.vectors().Index(ctx, pool, progress)
}

// ClearSpaces deletes the vectors of spaces that no server has used for a week, with their indexes, and returns their
// number.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	return s.vectors().ClearUnused(ctx, pool, func(ctx context.Context, unused []int16) error {
		_, err := pool.Exec(ctx, `DELETE FROM embed_batches WHERE space_id = ANY ($1)`, unused)
		return err
	})
}
