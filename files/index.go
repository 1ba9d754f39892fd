package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// vectorTable is the table of the chunks' vectors.
const vectorTable = "chunk_vectors"

// Index builds the index of the active space's vectors where that pays and it is not there; built says that it did. A space is indexed
// once it holds more rows than a search should read, and not while a tenth of them and more wait for their vectors: an index that is
// there makes each new row several times dearer than one that is built of all.
func (s *Store) Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error) {
	space, ok := s.o.Dense.Space()
	if !ok {
		return false, nil
	}
	index := embed.Index{Table: vectorTable, Space: space}
	if valid, err := index.Valid(ctx, pool); err != nil || valid {
		return false, err
	}
	type load struct {
		Rows    int `db:"rows"`
		Waiting int `db:"waiting"`
	}
	l, err := db.One[load](ctx, pool, `
		SELECT (SELECT count(*) FROM chunk_vectors WHERE space_id = $1) AS rows,
		       (SELECT coalesce(sum(end_ordinal - first_ordinal), 0) FROM embed_batches WHERE space_id = $1) AS waiting`, space.ID)
	if err != nil || l.Rows < s.indexRows || l.Waiting*10 > l.Rows {
		return false, err
	}
	return index.Build(ctx, pool, l.Rows, func(done int64) {
		if progress != nil {
			progress(int(done), l.Rows)
		}
	})
}

// spaceLife is how long the vectors of a space are kept that no server uses: whoever goes back to a model within that time finds them.
const spaceLife = 7 * 24 * time.Hour

// clearRows is how many vectors one statement deletes.
const clearRows = 5000

// ClearSpaces notes that the active space is in use, and deletes the vectors of spaces that no server has used for a week, with their
// indexes. It says how many vectors it deleted.
func (s *Store) ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error) {
	active, ok := s.o.Dense.Space()
	if !ok {
		return 0, nil
	}
	if err := embed.InUse(ctx, pool, active); err != nil {
		return 0, err
	}
	unused, err := embed.Unused(ctx, pool, spaceLife)
	if err != nil {
		return 0, err
	}
	for _, space := range unused {
		n, err := s.clearSpace(ctx, pool, space)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (s *Store) clearSpace(ctx context.Context, pool *pgxpool.Pool, space embed.Space) (rows int, err error) {
	if _, err := pool.Exec(ctx, `DELETE FROM embed_batches WHERE space_id = $1`, space.ID); err != nil {
		return 0, err
	}
	if err := (embed.Index{Table: vectorTable, Space: space}).Drop(ctx, pool); err != nil {
		return 0, err
	}
	for {
		tag, err := pool.Exec(ctx, `
			DELETE FROM chunk_vectors
			WHERE space_id = $1 AND chunk_key IN (SELECT chunk_key FROM chunk_vectors WHERE space_id = $1 LIMIT $2)`, space.ID, clearRows)
		if err != nil || tag.RowsAffected() == 0 {
			return rows, err
		}
		rows += int(tag.RowsAffected())
	}
}
