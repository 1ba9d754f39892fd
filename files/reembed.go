package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// ReembedSource lets endpoint.Reembed compute the vectors of chunks in another space.
func (s *Store) ReembedSource() endpoint.ReembedSource {
	vectors := s.vectors()
	return endpoint.ReembedSource{Vectors: vectors, Key: vectors.Row, Read: s.readReembedRows, Begin: s.forgetRefusals,
		Complete: s.dropPartial}
}

// reembedRows is chunks that have no vector in a space.
type reembedRows struct {
	org    db.Org
	space  int16
	chunks []reembedChunk
}

type reembedChunk struct {
	unembedded
	Version int64 `db:"version"` // changes whenever the row changes
}

// readReembedRows returns the chunks with these keys that have no vector in the space.
func (s *Store) readReembedRows(ctx context.Context, org db.Org, space endpoint.Space, keys []int64) (
	endpoint.Rows, error) {
	chunks, err := db.All[reembedChunk](ctx, s.db, `
		SELECT c.file_key, f.chunks AS file_chunks, c.key, c.heading, c.text, c.xmin::text::bigint AS version
		FROM chunks c JOIN files f ON f.org = c.org AND f.key = c.file_key AND NOT f.cancelled
		WHERE c.org = $1 AND c.key = ANY ($2) AND NOT EXISTS (
			SELECT FROM chunk_vectors v WHERE v.org = $1 AND v.chunk_key = c.key AND v.space_id = $3)
		ORDER BY c.key`, org, keys, space.ID)
	if err != nil || len(chunks) == 0 {
		return nil, err
	}
	return &reembedRows{org, space.ID, chunks}, nil
}

// Items implements endpoint.Rows.
func (b *reembedRows) Items() []embed.Item {
	return mapped(b.chunks, func(c reembedChunk) embed.Item { return c.item() })
}

// Lock implements endpoint.Rows. It leaves out chunks that were deleted or changed by an erasure.
func (b *reembedRows) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	type row struct {
		Key    int64 `db:"key"`
		Folder int64 `db:"folder_key"`
	}
	same, err := db.All[row](ctx, tx, `
		SELECT c.key, c.folder_key FROM chunks c
		JOIN unnest($2::bigint[], $3::bigint[]) AS was (key, version)
		  ON was.key = c.key AND was.version = c.xmin::text::bigint
		WHERE c.org = $1
		ORDER BY c.key
		FOR SHARE OF c`, b.org, mapped(b.chunks, func(c reembedChunk) int64 { return c.Key }),
		mapped(b.chunks, func(c reembedChunk) int64 { return c.Version }))
	locked := make(map[int64][]any, len(same))
	for _, c := range same {
		locked[c.Key] = []any{b.org, c.Folder}
	}
	return locked, err
}

// Finish implements endpoint.Rows. For each file it counts the refused chunks and stores one reason.
func (b *reembedRows) Finish(ctx context.Context, tx pgx.Tx, refused []*endpoint.RefusedError) error {
	for _, r := range refused {
		for _, c := range b.chunks {
			if c.Key != r.ID {
				continue
			}
			part := &filePart{EmbedArgs: EmbedArgs{Org: b.org, FileKey: c.FileKey, SpaceID: b.space},
				chunks: []unembedded{c.unembedded}}
			if err := part.refuse(ctx, tx, []*endpoint.RefusedError{r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetRefusals deletes the refusals of a space, so that its endpoint is asked for these chunks again.
func (s *Store) forgetRefusals(ctx context.Context, org db.Org, space int16) error {
	return s.exec(ctx, `DELETE FROM embed_refusals WHERE org = $1 AND space_id = $2`, org, space)
}

// dropPartial deals with files that have vectors in a space for only some of their chunks, and no batch for the others.
// It deletes these vectors, and Backfill then embeds the whole files.
func (s *Store) dropPartial(ctx context.Context, org db.Org, space int16) error {
	err := s.exec(ctx, `
		WITH partial AS (
			SELECT f.key FROM files f
			JOIN chunks c ON c.org = f.org AND c.file_key = f.key
			JOIN chunk_vectors v ON v.org = c.org AND v.chunk_key = c.key AND v.space_id = $2
			LEFT JOIN embed_refusals r ON r.org = f.org AND r.file_key = f.key AND r.space_id = $2
			WHERE f.org = $1 AND NOT EXISTS (
				SELECT FROM embed_batches b WHERE b.org = $1 AND b.file_key = f.key AND b.space_id = $2)
			GROUP BY f.key, f.chunks, r.chunks
			HAVING count(*) + coalesce(r.chunks, 0) < f.chunks
		), refusals AS (
			DELETE FROM embed_refusals r USING partial p WHERE r.org = $1 AND r.file_key = p.key AND r.space_id = $2
		)
		DELETE FROM chunk_vectors v USING chunks c, partial p
		WHERE c.org = $1 AND c.file_key = p.key AND v.org = $1 AND v.chunk_key = c.key AND v.space_id = $2`, org, space)
	if err != nil {
		return fmt.Errorf("drop the vectors of files that are not whole: %w", db.Error(err))
	}
	return nil
}
