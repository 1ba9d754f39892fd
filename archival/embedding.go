package archival

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// lacking is a passage without its vector.
type lacking struct {
	Key  int64  `db:"key"`
	Text string `db:"text"`
	Sum  []byte `db:"sha256"`
}

// embed makes the vectors of one batch of an archive's passages; more says that there was one. The endpoint is called with no transaction
// open; a passage it refuses goes without a vector and is found by its words.
func (s *Store) embed(ctx context.Context, turn *embed.Turn, job EmbedArgs, space embed.Space) (more bool, err error) {
	batch, err := s.lacking(ctx, job, space)
	if err != nil || len(batch) == 0 {
		return false, err
	}
	items := make([]embed.Item, len(batch))
	for i, p := range batch {
		items[i] = embed.Item{ID: p.Key, Text: p.Text}
	}
	vectors, refused, err := turn.Openings(ctx, items)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return false, err
		}
		return false, errors.Join(err, s.note(ctx, job, space, embed.Waiting(err)))
	}
	return true, s.keep(ctx, job, space, batch, vectors, refused)
}

// lacking reads passages of an archive that wait: as many as the endpoint has time for.
func (s *Store) lacking(ctx context.Context, job EmbedArgs, space embed.Space) ([]lacking, error) {
	return db.All[lacking](ctx, s.db, `
		SELECT key, text, sha256 FROM (
			SELECT p.key, p.text, p.sha256, sum(length(p.text) / 4 + 1) OVER (ORDER BY p.key) - length(p.text) / 4 AS before
			FROM (
				SELECT u.passage_key FROM unembedded_passages u JOIN archives c ON c.key = u.archive_key
				WHERE u.org = @org AND u.archive_key = @archive AND u.refused IS NULL AND c.embedded_space = @space AND c.deleted_at IS NULL
				ORDER BY u.passage_key
				LIMIT @size
			) first
			JOIN passages p ON p.key = first.passage_key
		) first
		WHERE before <= @tokens
		ORDER BY key`,
		pgx.StrictNamedArgs{"org": job.Org, "archive": job.ArchiveKey, "space": space.ID, "size": s.dense.Size(), "tokens": embed.MostTokens})
}

// keep stores a batch's vectors. An archive is left alone that was deleted meanwhile or belongs to another space now, and so are passages
// that were deleted or have another text.
func (s *Store) keep(ctx context.Context, job EmbedArgs, space embed.Space, batch []lacking, vectors []embed.Vector,
	refused []*embed.RefusedError) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		same, err := s.With(tx).fence(ctx, job, space, batch)
		if err != nil || len(same) == 0 {
			return ignoreNotFound(err)
		}
		var rows pgx.Batch
		for _, v := range vectors {
			if same[v.ID] {
				rows.Queue(`
					INSERT INTO passage_vectors (space_id, passage_key, org, archive_key, tags, happened_at, embedding)
					SELECT $1, key, org, archive_key, tags, happened_at, $3
					FROM passages WHERE org = $4 AND key = $2
					ON CONFLICT (passage_key, space_id) DO NOTHING`, space.ID, v.ID, embed.Half(v.Values), job.Org)
			}
		}
		for _, r := range refused {
			if same[r.ID] {
				rows.Queue(`UPDATE unembedded_passages SET refused = $3 WHERE org = $1 AND passage_key = $2`, job.Org, r.ID, r.Reason)
				delete(same, r.ID)
			}
		}
		rows.Queue(`DELETE FROM unembedded_passages WHERE org = $1 AND passage_key = ANY ($2)`, job.Org, slices.Collect(maps.Keys(same)))
		rows.Queue(`UPDATE archives SET embed_error = NULL WHERE org = $1 AND key = $2 AND embed_error IS NOT NULL`, job.Org, job.ArchiveKey)
		return tx.SendBatch(ctx, &rows).Close()
	})
}

// fence holds those passages of a batch that are as they were read. ErrNotFound if their archive is not what it was.
func (s *Store) fence(ctx context.Context, job EmbedArgs, space embed.Space, batch []lacking) (map[int64]bool, error) {
	if _, err := db.One[int64](ctx, s.db, `
		SELECT key FROM archives WHERE org = $1 AND key = $2 AND deleted_at IS NULL AND embedded_space = $3 FOR KEY SHARE`,
		job.Org, job.ArchiveKey, space.ID); err != nil {
		return nil, err
	}
	keys, sums := make([]int64, len(batch)), make([][]byte, len(batch))
	for i, p := range batch {
		keys[i], sums[i] = p.Key, p.Sum
	}
	held, err := db.All[int64](ctx, s.db, `
		SELECT p.key FROM passages p JOIN unnest($2::bigint[], $3::bytea[]) AS was (key, sum) ON was.key = p.key AND was.sum = p.sha256
		WHERE p.org = $1
		ORDER BY p.key
		FOR SHARE OF p`, job.Org, keys, sums)
	same := make(map[int64]bool, len(held))
	for _, key := range held {
		same[key] = true
	}
	return same, err
}

func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// note tells why an archive's passages wait for their vectors.
func (s *Store) note(ctx context.Context, job EmbedArgs, space embed.Space, reason string) error {
	ctx, cancel := embed.Noting(ctx)
	defer cancel()
	_, err := s.db.Exec(ctx, `
		UPDATE archives SET embed_error = $3
		WHERE org = $1 AND key = $2 AND embedded_space = $4 AND embed_error IS DISTINCT FROM $3`, job.Org, job.ArchiveKey, reason, space.ID)
	return db.Error(err)
}

// wait makes passages of an archive wait for their vectors, if the archive has a space.
func (s *Store) wait(ctx context.Context, org db.Org, archive int64, ids []uuid.UUID) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO unembedded_passages (passage_key, org, archive_key)
		SELECT p.key, c.org, c.key FROM archives c JOIN passages p ON p.archive_key = c.key
		WHERE c.org = $1 AND c.key = $2 AND c.embedded_space IS NOT NULL AND p.id = ANY ($3)
		ON CONFLICT (passage_key) DO UPDATE SET refused = NULL`, org, archive, ids)
	return db.Error(err)
}
