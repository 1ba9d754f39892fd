package archival

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// ReembedSource lets endpoint.Reembed compute the passages' vectors in another space.
func (s *Store) ReembedSource() endpoint.ReembedSource {
	return s.Queue().ReembedSource(s.readReembedRows)
}

// reembedRows is passages that have no vector in a space.
type reembedRows struct {
	batch
	org db.Org
}

// readReembedRows returns the passages with these keys that have no vector in the space.
func (s *Store) readReembedRows(ctx context.Context, org db.Org, space endpoint.Space, keys []int64) (
	endpoint.Rows, error) {
	rows, err := db.All[unembedded](ctx, s.db, `
		SELECT p.key, p.text, p.sha256 FROM passages p
		WHERE p.org = $1 AND p.key = ANY ($2) AND NOT EXISTS (
			SELECT FROM passage_vectors v WHERE v.org = $1 AND v.passage_key = p.key AND v.space_id = $3)
		ORDER BY p.key`, org, keys, space.ID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &reembedRows{batch{store: s, space: space, passages: rows}, org}, nil
}

// Lock implements endpoint.Rows. It leaves out passages that were deleted or got another text.
func (b *reembedRows) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	keys, sums := b.columns()
	type row struct {
		Key        int64     `db:"key"`
		Archive    int64     `db:"archive_key"`
		Tags       []string  `db:"tags"`
		HappenedAt time.Time `db:"happened_at"`
		db.Validity
	}
	unchanged, err := db.All[row](ctx, tx, `
		SELECT p.key, p.archive_key, p.tags, p.happened_at, p.valid_from, p.valid_until FROM passages p
		JOIN unnest($2::bigint[], $3::bytea[]) AS was (key, sum) ON was.key = p.key AND was.sum = p.sha256
		WHERE p.org = $1
		ORDER BY p.key
		FOR SHARE OF p`, b.org, keys, sums)
	locked := make(map[int64][]any, len(unchanged))
	for _, p := range unchanged {
		locked[p.Key] = []any{b.org, p.Archive, p.Tags, p.HappenedAt, p.ValidFrom, p.ValidUntil}
	}
	return locked, err
}

// Finish implements endpoint.Rows.
func (*reembedRows) Finish(context.Context, pgx.Tx, []*endpoint.RefusedError) error { return nil }
