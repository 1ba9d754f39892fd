package files

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// requeueFiles is how many files get their batches queued again in one transaction.
const requeueFiles = 1000

// Backfill queues the vectors that the active space lacks, for every organization. These are the vectors of files that
// were embedded in another space or not at all, and of files that lost their jobs, for example because a server with
// another space took them. If a file has all vectors in this space, Backfill deletes its batches in other spaces. It
// returns how many batches it added.
func (s *Store) Backfill(ctx context.Context) (added int, err error) {
	space := s.space()
	if space == 0 {
		return 0, nil
	}
	orgs, err := db.Orgs(ctx, s.db)
	for _, org := range orgs {
		n, failed := s.backfill(ctx, org, space)
		if added += n; failed != nil {
			return added, failed
		}
	}
	return added, err
}

// backfill is Backfill for one organization.
func (s *Store) backfill(ctx context.Context, org db.Org, space int16) (added int, err error) {
	tag, err := s.db.Exec(ctx, `
		INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key)
		SELECT f.key, $2, f.generation, first, least(first + b.size, f.chunks), f.org, f.folder_key
		FROM files f JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		CROSS JOIN LATERAL (SELECT least(greatest($4 / d.chunk_tokens, 1), $3) AS size) b
		CROSS JOIN LATERAL generate_series(0, f.chunks - 1, b.size) AS first
		WHERE f.org = $1 AND f.chunks > 0 AND NOT (f.cancelled AND f.generation = f.wanted_generation)
		  AND NOT EXISTS (SELECT FROM embed_batches b WHERE b.org = $1 AND b.file_key = f.key AND b.space_id = $2)
		  AND NOT EXISTS (SELECT FROM embed_refusals r WHERE r.org = $1 AND r.file_key = f.key AND r.space_id = $2)
		  AND NOT EXISTS (
			SELECT FROM chunks c JOIN chunk_vectors v ON v.org = c.org AND v.chunk_key = c.key AND v.space_id = $2
			WHERE c.org = $1 AND c.file_key = f.key)
		ON CONFLICT DO NOTHING`, org, space, endpoint.MostTexts, endpoint.MostTokens)
	if err != nil {
		return 0, fmt.Errorf("queue missing vectors: %w", err)
	}
	queued, err := s.queuedBatches(ctx, org, space)
	if err != nil {
		return 0, err
	}
	files, err := db.All[int64](ctx, s.db, `
		SELECT DISTINCT b.file_key
		FROM embed_batches b JOIN files f ON f.org = b.org AND f.key = b.file_key
		JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		LEFT JOIN unnest($3::bigint[], $4::integer[]) AS q (file_key, generation)
		  ON q.file_key = b.file_key AND q.generation = b.generation
		WHERE b.org = $1 AND b.space_id = $2 AND NOT f.cancelled AND q.file_key IS NULL
		ORDER BY b.file_key`, org, space, mapped(queued, func(q FileGeneration) int64 { return q.FileKey }),
		mapped(queued, func(q FileGeneration) int { return q.Generation }))
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(files, requeueFiles) {
		if err := s.requeueBatches(ctx, org, space, some); err != nil {
			return 0, err
		}
	}
	return int(tag.RowsAffected()), s.deleteOtherSpaces(ctx, org, space)
}

// queuedBatches returns the generations of an organization's files that have jobs for their vectors.
func (s *Store) queuedBatches(ctx context.Context, org db.Org, space int16) ([]FileGeneration, error) {
	return db.All[FileGeneration](ctx, s.db, `
		SELECT DISTINCT (args ->> 'file_key')::bigint AS file_key, (args ->> 'generation')::integer AS generation
		FROM river_job
		WHERE kind = 'embed_chunks' AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
		  AND args @> jsonb_build_object('org', $1::integer, 'space_id', $2::integer)
		UNION
		SELECT w.file_key, w.generation
		FROM river_job CROSS JOIN LATERAL jsonb_to_recordset(args -> 'files') AS w (file_key bigint, generation integer)
		WHERE kind = 'embed_files' AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')
		  AND args @> jsonb_build_object('org', $1::integer, 'space_id', $2::integer)`, org, space)
}

// requeueBatches queues the batches of files that lost their jobs.
func (s *Store) requeueBatches(ctx context.Context, org db.Org, space int16, fileKeys []int64) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			UPDATE embed_batches SET turn = NULL
			WHERE org = $1 AND space_id = $2 AND file_key = ANY ($3) AND turn IS NOT NULL`, org, space, fileKeys); err != nil {
			return err
		}
		return s.With(tx).queueBatches(ctx, org, space, fileKeys, embedWidth)
	})
}

// deleteOtherSpaces deletes the batches of other spaces for files that have none left in this space, and the vectors of
// these files in those spaces. A file is embedded in a space completely or not at all.
func (s *Store) deleteOtherSpaces(ctx context.Context, org db.Org, space int16) error {
	_, err := s.db.Exec(ctx, `
		WITH gone AS (
			DELETE FROM embed_batches b
			WHERE b.org = $1 AND b.space_id <> $2 AND NOT EXISTS (
				SELECT FROM embed_batches a WHERE a.org = $1 AND a.file_key = b.file_key AND a.space_id = $2)
			RETURNING b.file_key, b.space_id
		), refusals AS (
			DELETE FROM embed_refusals r USING gone g
			WHERE r.org = $1 AND r.file_key = g.file_key AND r.space_id = g.space_id
		)
		DELETE FROM chunk_vectors v
		USING (SELECT DISTINCT file_key, space_id FROM gone) g, chunks c
		WHERE c.org = $1 AND c.file_key = g.file_key AND v.org = $1 AND v.chunk_key = c.key AND v.space_id = g.space_id`,
		org, space)
	if err != nil {
		return fmt.Errorf("delete the batches of other spaces: %w", err)
	}
	return nil
}
