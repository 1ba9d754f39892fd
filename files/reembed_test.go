package files_test

import (
	"testing"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
)

// A new space is adopted in which some files have only a part of their vectors: these files are embedded whole. Files
// that have all vectors, apart from refused chunks, keep them. So does every other space.
func TestFilesThatAreRemadeInPartAreEmbeddedWhole(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	encoder := e.Endpoint(t)
	fx, old := newDenseFixtureWith(t, e, encoder, files.Queues())
	folder := fx.folder("f")
	whole := fx.upload(folder, "whole.txt", manyLines(300))
	part := fx.upload(folder, "part.txt", manyLines(600))
	refused := fx.upload(folder, "refused.txt", manyLines(400))
	if part.TotalChunks < 4 || refused.TotalChunks < 3 {
		t.Fatalf("the files have %d and %d chunks", part.TotalChunks, refused.TotalChunks)
	}
	next := fx.space(e, "next")
	for _, some := range []struct {
		file   files.File
		chunks int
	}{{whole, whole.TotalChunks}, {part, 2}, {refused, refused.TotalChunks - 1}} {
		if _, err := fx.pool.Exec(t.Context(), `
			INSERT INTO chunk_vectors (org, chunk_key, space_id, folder_key, embedding)
			SELECT v.org, v.chunk_key, $1, v.folder_key, v.embedding
			FROM chunk_vectors v JOIN chunks c ON c.org = v.org AND c.key = v.chunk_key
			JOIN files f ON f.org = c.org AND f.key = c.file_key
			WHERE f.id = $2 AND v.space_id = $3 AND c.ordinal < $4`, next.ID, some.file.ID, old.ID, some.chunks); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fx.pool.Exec(t.Context(), `
		INSERT INTO embed_refusals (org, file_key, space_id, chunks, reason)
		SELECT org, key, $1, 1, 'too long' FROM files WHERE id = $2`, next.ID, refused.ID); err != nil {
		t.Fatal(err)
	}
	vectors := func(f files.File, space endpoint.Space) int {
		return fx.count(`
			SELECT count(*) FROM chunk_vectors v JOIN chunks c ON c.org = v.org AND c.key = v.chunk_key
			JOIN files f ON f.org = c.org AND f.key = c.file_key
			WHERE f.id = $1 AND v.space_id = $2`, f.ID, space.ID)
	}
	if err := fx.ReembedSource().Complete(t.Context(), fx.org, next.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file files.File
		want int
	}{{whole, whole.TotalChunks}, {part, 0}, {refused, refused.TotalChunks - 1}} {
		if new, was := vectors(c.file, next), vectors(c.file, old); new != c.want || was != c.file.TotalChunks {
			t.Errorf("%s has %d new vectors and %d old ones of %d; want %d new ones", c.file.OriginalName, new, was,
				c.file.TotalChunks, c.want)
		}
	}
	encoder.Use(next)
	fx.backfill()
	got := fx.await(folder, part)
	if got.Status != files.Completed || vectors(part, next) != part.TotalChunks {
		t.Errorf("got %+v with %d new vectors of %d", got, vectors(part, next), part.TotalChunks)
	}
}
