package archival

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// SetIndexRows sets up to how many rows a search reads without an index.
func (s *Store) SetIndexRows(rows int) { s.search.IndexRows = rows }

// SetSettle sets how long an embedding job waits for more inserts.
func (s *Store) SetSettle(d time.Duration) { s.settle = d }

// EmbedOnce runs the embedding job until nothing is left or the endpoint fails.
func EmbedOnce(s *Store, ctx context.Context, org db.Org, archiveID string) error {
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM archives WHERE org = $1 AND id = $2`, org, archiveID)
	if err != nil {
		return err
	}
	q := s.Queue()
	space, _ := s.endpoint.Space()
	for more := true; more && err == nil; {
		more, err = q.Once(ctx, job{Org: org, Owner: key}, space)
	}
	return err
}

// BackfillOrg is Queue().Backfill for one organization, while no server uses another space.
func BackfillOrg(s *Store, ctx context.Context, org db.Org) error {
	q, space := s.Queue(), s.space()
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		keys, err := db.All[int64](ctx, tx, `
			SELECT key FROM archives WHERE org = $1 AND coalesce(embedded_space, 0) <> $2 AND deleted_at IS NULL`, org, space)
		if err != nil {
			return err
		}
		for _, sql := range q.TakeOver {
			if _, err := tx.Exec(ctx, sql, pgx.NamedArgs{"org": org, "keys": keys, "space": space}); err != nil {
				return err
			}
		}
		return nil
	})
}

// space returns the id of the active space, or 0.
func (s *Store) space() int16 {
	space, _ := s.endpoint.Space()
	return space.ID
}

// SetWordRows sets how many passages an archive needs before its words are indexed, and how many new ones make a
// segment.
func (s *Store) SetWordRows(first, more int) {
	s.search.Words.FirstRows, s.search.Words.NewRows = first, more
}

// SetWide sets from how many passages on a search reads the keys of its tags and times first.
func (s *Store) SetWide(rows int) { s.search.WideRows = rows }

// The statements that insert a text, and read what is stored in its place.
var InsertPassage, StoredPassage = insertPassage, storedPassage

// InsertArgs are arguments of both.
func InsertArgs(ctx context.Context, org db.Org, archive int64, text string) pgx.StrictNamedArgs {
	sum := sha256.Sum256([]byte(text))
	d := Draft{Text: text, Tags: []string{}, Metadata: []byte(`{}`), HappenedAt: new(time.Now())}
	return d.insertArgs(ctx, org, archive, &piece{id: uuid.New(), sha256: sum})
}
