package archival

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// DeleteOfUser deletes a user's archives with their passages, at once and not later as DeleteArchive does. It returns
// how many passages there were.
func (s *Store) DeleteOfUser(ctx context.Context, org db.Org, user int64) (passages int, err error) {
	archives, err := db.All[string](ctx, s.db, `
		SELECT id FROM archives WHERE org = $1 AND user_key = $2 ORDER BY key`, org, user)
	for _, id := range archives {
		if err != nil {
			break
		}
		var n int
		n, err = s.deleteWhole(ctx, org, id)
		passages += n
	}
	return passages, err
}

// deleteWhole deletes an archive and its passages. Most passages go in batches, each a transaction of its own.
func (s *Store) deleteWhole(ctx context.Context, org db.Org, id string) (passages int, err error) {
	batch := func(d db.DB, key int64) (int, error) {
		const some = `SELECT p.key FROM passages p WHERE p.org = $1 AND p.archive_key = $2 ORDER BY p.key LIMIT $3`
		if _, err := d.Exec(ctx, `
			UPDATE passages SET superseded_by = NULL
			WHERE org = $1 AND archive_key = $2 AND superseded_by IN (`+some+`)`, org, key, clearRows); err != nil {
			return 0, db.Error(err)
		}
		return db.Delete(ctx, d, "passages", `r.key IN (`+some+`)`, org, key, clearRows)
	}
	key, err := s.key(ctx, org, id)
	for n := clearRows; err == nil && n == clearRows; passages += n {
		err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
			n, err = batch(tx, key)
			return err
		})
	}
	if err != nil {
		return passages, err
	}
	return passages, db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		if _, err := txStore.lock(ctx, org, id, "UPDATE"); err != nil { // from now on nobody adds a passage
			return err
		}
		for n := clearRows; n == clearRows; passages += n {
			if n, err = batch(tx, key); err != nil {
				return err
			}
		}
		if err := txStore.appendEvents(ctx, org, key, event.ArchiveDetached, id); err != nil {
			return err
		}
		return db.DeleteOne(ctx, tx, "archives", `r.key = $2`, org, key)
	})
}

func (s *Store) key(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.db, `SELECT key FROM archives WHERE org = $1 AND id = $2`, org, id)
	return key, orNotFound(err, "Archive", id)
}
