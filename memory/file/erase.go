package file

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// Reindex updates the hash, the words and the vectors of a file after an erasure in its path or content.
func (s *Store) Reindex(ctx context.Context, org db.Org, key string) error {
	f, err := db.One[struct {
		Key     int64  `db:"key"`
		Path    string `db:"path"`
		Content string `db:"content"`
	}](ctx, s.db, `SELECT key, path, content FROM memory_files WHERE org = $1 AND key = $2::text::bigint`, org, key)
	if err != nil {
		return err
	}
	if err := s.dropOldVectors(ctx, org, f.Key, f.Path, f.Content); err != nil {
		return err
	}
	lex := lexicon.Document(f.Path + "\n" + f.Content)
	return db.Exec(ctx, s.db, `
		UPDATE memory_files SET folded = @folded, sha256 = @sha256, lex = @lex, terms = @terms, unembedded = true,
		    refused_chunks = '{}'
		WHERE org = @org AND key = @key::text::bigint`,
		pgx.StrictNamedArgs{"org": org, "key": key, "folded": fold(f.Path), "sha256": hashOf(f.Content),
			"lex": lex.Vector, "terms": lexicon.Owned(0, lex.Terms)})
}

// ReweighWords computes the word weights of files again if an older version of Loci computed them. It returns the
// number of files.
func (s *Store) ReweighWords(ctx context.Context) (rows int, err error) {
	return s.search.Reweigh(ctx, s.db, `
		SELECT r.key, 0::bigint AS owner, r.path || E'\n' || r.content AS text, NULL::text AS language
		FROM memory_files r WHERE r.org = @org`)
}
