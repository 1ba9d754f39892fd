package archival

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// clearRows is how many rows one statement deletes.
const clearRows = 5000

// Clear deletes some passages of deleted archives, and the deleted archives that have none left, in every organization.
// It returns the number of deleted rows; above 0, there may be more.
func (s *Store) Clear(ctx context.Context) (rows int, err error) {
	err = db.EachOrg(ctx, s.db, func(org db.Org) error {
		cleared, err := s.clearOrg(ctx, org)
		rows += cleared
		return err
	}, `SELECT DISTINCT org FROM archives WHERE deleted_at IS NOT NULL`)
	return rows, err
}

func (s *Store) clearOrg(ctx context.Context, org db.Org) (rows int, err error) {
	tag, err := s.db.Exec(ctx, `
		UPDATE passages SET superseded_by = NULL WHERE org = $1 AND key IN (
			SELECT p.key FROM archives c JOIN passages p ON p.org = c.org AND p.archive_key = c.key
			WHERE c.org = $1 AND c.deleted_at IS NOT NULL AND p.superseded_by IS NOT NULL
			LIMIT $2)`, org, clearRows)
	if rows = int(tag.RowsAffected()); err != nil || rows > 0 {
		return rows, db.Error(err)
	}
	for _, sql := range []string{
		db.Deleting("", "passages", `r.org = $1 AND r.key IN (
			SELECT p.key FROM archives c JOIN passages p ON p.org = c.org AND p.archive_key = c.key
			WHERE c.org = $1 AND c.deleted_at IS NOT NULL
			LIMIT $2)`),
		db.Deleting("", "archives", `r.org = $1 AND r.key IN (
			SELECT d.key FROM archives d
			WHERE d.org = $1 AND d.deleted_at IS NOT NULL
			  AND NOT EXISTS (SELECT FROM passages p WHERE p.org = $1 AND p.archive_key = d.key)
			LIMIT $2)`),
	} {
		gone, err := db.One[db.Deleted](ctx, s.db, sql, org, clearRows)
		if err != nil {
			return rows, fmt.Errorf("clear deleted archives: %w", err)
		}
		rows += gone.Rows
	}
	return rows, nil
}

// IndexWords indexes the words of new passages in archives with enough of them. It returns how many segments of the
// index it made. Several servers may call it at once.
func (s *Store) IndexWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Update(ctx, s.db)
}

// PruneWords rebuilds those segments of the index of words that hold changed, erased or many deleted passages. It
// returns how many it rebuilt.
func (s *Store) PruneWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Prune(ctx, s.db)
}

// ReweighWords computes the word weights of passages again if an older version of Loci computed them. It returns the
// number of passages.
func (s *Store) ReweighWords(ctx context.Context) (rows int, err error) {
	return s.search.Reweigh(ctx, s.db, `
		SELECT r.key, r.archive_key AS owner, r.text, CASE WHEN r.language_given THEN r.language END AS language
		FROM passages r WHERE r.org = @org`)
}
