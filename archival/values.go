package archival

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// valuesOf is SQL that stores the values in the metadata of passages p, by which filters find them.
const valuesOf = `
	INSERT INTO passage_values (org, passage_key, n, archive_key, path, text, number, moment)
	SELECT p.org, p.key, v.n, p.archive_key, v.path, v.text, v.number, v.moment
	FROM passages p CROSS JOIN metadata_values(p.metadata) v
	WHERE p.metadata <> '{}'`

// insertDescribed returns a statement that inserts passages, counts them, and stores the values in their metadata.
func insertDescribed(insert string) string {
	return db.Counting("passages", insert, ", key, archive_key, metadata") +
		`, described AS (` + strings.ReplaceAll(valuesOf, "passages p", "added p") + `) SELECT count(*) FROM added`
}

// describe stores the values in the metadata of a passage anew.
func (s *Store) describe(ctx context.Context, org db.Org, key int64) error {
	var batch pgx.Batch
	batch.Queue(`DELETE FROM passage_values WHERE org = $1 AND passage_key = $2`, org, key)
	batch.Queue(valuesOf+` AND p.org = $1 AND p.key = $2`, org, key)
	return db.Error(s.db.SendBatch(ctx, &batch).Close())
}
