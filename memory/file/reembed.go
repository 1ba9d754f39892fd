package file

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// ReembedSource lets endpoint.Reembed compute the vectors of memory files in another space.
func (s *Store) ReembedSource() endpoint.ReembedSource {
	remade := s.Queue().ReembedSource(s.readReembedRows)
	remade.Key = s.search.VectorKey // because a file has several vectors
	return remade
}

// reembedRows is chunks of files that have no vector in a space.
type reembedRows struct {
	batch
	org   db.Org
	trees map[int64]int64 // file key → tree key
}

// readReembedRows returns the chunks of the files with these keys that have no vector in the space.
func (s *Store) readReembedRows(ctx context.Context, org db.Org, space endpoint.Space, keys []int64) (
	endpoint.Rows, error) {
	type row struct {
		unembedded
		Tree int64 `db:"tree_key"`
	}
	files, err := db.All[row](ctx, s.db, `
		SELECT f.key, f.path, f.content, f.sha256, f.tree_key, ARRAY(
			SELECT v.chunk FROM memory_file_vectors v
			WHERE v.org = $1 AND v.tree_key = f.tree_key AND v.file_key = f.key AND v.space_id = $3) AS has
		FROM memory_files f
		WHERE f.org = $1 AND f.key = ANY ($2) AND f.deleted_at IS NULL
		ORDER BY f.key`, org, keys, space.ID)
	b := &reembedRows{batch: batch{store: s, space: space}, org: org, trees: map[int64]int64{}}
	for _, f := range files {
		f.lacking = slices.DeleteFunc(chunksOf(f.Path, f.Content), func(c chunk) bool { return slices.Contains(f.Has, c.id) })
		if len(f.lacking) > 0 {
			b.files, b.trees[f.Key] = append(b.files, f.unembedded), f.Tree
		}
	}
	if err != nil || len(b.files) == 0 {
		return nil, err
	}
	return b, nil
}

// Lock implements endpoint.Rows. It leaves out files that were deleted or got another path or text.
func (b *reembedRows) Lock(ctx context.Context, tx pgx.Tx) (map[int64][]any, error) {
	keys, paths, sums := b.columns()
	same, err := db.All[int64](ctx, tx, `
		SELECT f.key FROM memory_files f
		JOIN unnest($2::bigint[], $3::text[], $4::text[]) AS was (key, path, sum)
		  ON was.key = f.key AND was.path = f.path AND was.sum = f.sha256
		WHERE f.org = $1 AND f.deleted_at IS NULL
		ORDER BY f.key
		FOR SHARE OF f`, b.org, keys, paths, sums)
	locked := map[int64][]any{}
	for _, f := range b.files {
		for _, c := range f.lacking {
			if slices.Contains(same, f.Key) {
				locked[c.id] = []any{b.org, b.trees[f.Key], f.Key, c.first, c.last}
			}
		}
	}
	return locked, err
}

// Finish implements endpoint.Rows.
func (*reembedRows) Finish(context.Context, pgx.Tx, []*endpoint.RefusedError) error { return nil }
