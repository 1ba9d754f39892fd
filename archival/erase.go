package archival

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// Contents are the parts of a passage that an erasure may change.
type Contents struct {
	Text     string   `db:"text"`
	Tags     []string `db:"tags"`
	Metadata string   `db:"metadata"` // JSON
}

// Replace writes the contents that erase returns for a passage's stored ones, under a lock on the passage, and queues
// the passage for a new vector. It deletes the passage if its new text is empty or is already the text of another
// passage of the archive. erase may be called twice.
func (s *Store) Replace(ctx context.Context, org db.Org, key int64, erase func(Contents) Contents) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		type row struct {
			Archive int64  `db:"archive_key"`
			ID      string `db:"id"`
			Given   string `db:"given"` // the code of its language; empty: none was chosen
			Contents
		}
		p, err := db.One[row](ctx, tx, `
			SELECT archive_key, id::text AS id, text, tags, metadata::text AS metadata,
			       CASE WHEN language_given THEN coalesce(language, '') ELSE '' END AS given
			FROM passages WHERE org = $1 AND key = $2 FOR UPDATE`, org, key)
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		erased := erase(p.Contents)
		text := erased.Text
		if err := txStore.search.Words.Note(ctx, tx, org, key); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM passage_vectors WHERE org = $1 AND passage_key = $2`, org, key); err != nil {
			return db.Error(err)
		}
		sum, lex := sha256.Sum256([]byte(text)), lexicon.DocumentIn(text, p.Given)
		gone, err := db.Delete(ctx, tx, "passages", `r.key = $2 AND ($3 OR EXISTS (
				SELECT FROM passages o WHERE o.org = $1 AND o.archive_key = r.archive_key AND o.sha256 = $4 AND o.key <> $2
				  AND o.valid_until IS NOT DISTINCT FROM r.valid_until))`, org, key, text == "", sum[:])
		if err != nil || gone > 0 {
			return err
		}
		if err := db.Resize(ctx, tx, db.Rows{Table: "passages", Where: `r.key = $2`, Args: []any{org, key}}, func() error {
			return db.Exec(ctx, tx, `
			UPDATE passages
			SET text = $3, sha256 = $4, lex = $5, terms = $6, tags = $7, metadata = $8, updated_at = now()
			WHERE org = $1 AND key = $2`, org, key, text, sum[:], &lex.Vector, lexicon.Owned(p.Archive, lex.Terms),
				db.Tags(erased.Tags), erased.Metadata)
		}); err != nil {
			return err
		}
		if err := txStore.describe(ctx, org, key); err != nil {
			return err
		}
		return txStore.wait(ctx, org, p.Archive, []uuid.UUID{uuidOf("passage-" + p.ID)})
	})
}
