package file

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
)

// chunk is a part of a file's text that gets its own vector.
type chunk struct {
	id          int64  // first 8 bytes of the SHA-256 of text
	text        string // begins with the file's path and the heading above the part
	first, last int    // line numbers, from 1
}

// chunksOf cuts the text of a file. If a part occurs more than once, it is one chunk, at its first place.
func chunksOf(path, content string) (all []chunk) {
	for _, c := range chunker.Split(content, chunker.Options{Kind: chunker.Markdown}) {
		text := path + "\n"
		if c.Heading != "" {
			text += c.Heading + "\n"
		}
		text += "\n" + c.Text
		sum := sha256.Sum256([]byte(text))
		id := int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any 8 bytes name a chunk
		if !slices.ContainsFunc(all, func(o chunk) bool { return o.id == id }) {
			all = append(all, chunk{id: id, text: text, first: c.FirstLine, last: c.LastLine})
		}
	}
	return all
}

// dropOldVectors deletes the vectors of chunks that the file no longer has, and updates the line numbers of the others.
func (s *Store) dropOldVectors(ctx context.Context, org db.Org, file int64, path, content string) error {
	chunks := chunksOf(path, content)
	ids, firsts, lasts := make([]int64, len(chunks)), make([]int, len(chunks)), make([]int, len(chunks))
	for i, c := range chunks {
		ids[i], firsts[i], lasts[i] = c.id, c.first, c.last
	}
	_, err := s.db.Exec(ctx, `
		WITH dropped AS (
			DELETE FROM memory_file_vectors v
			WHERE v.org = @org AND v.file_key = @file AND v.chunk <> ALL (@chunks)
			  AND v.tree_key = (SELECT f.tree_key FROM memory_files f WHERE f.org = @org AND f.key = @file)
		)
		UPDATE memory_file_vectors v SET first_line = c.first, last_line = c.last
		FROM unnest(@chunks::bigint[], @firsts::integer[], @lasts::integer[]) AS c (chunk, first, last)
		WHERE v.org = @org AND v.file_key = @file AND v.chunk = c.chunk AND (v.first_line, v.last_line) <> (c.first, c.last)
		  AND v.tree_key = (SELECT f.tree_key FROM memory_files f WHERE f.org = @org AND f.key = @file)`,
		pgx.StrictNamedArgs{"org": org, "file": file, "chunks": ids, "firsts": firsts, "lasts": lasts})
	return db.Error(err)
}
