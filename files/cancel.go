package files

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// errCancelled is shown on a file after a cancellation.
const errCancelled = "cancelled by request; retry the file to go on"

// Cancel stops the work on a file that waits, is being parsed or is being embedded. The file's status is then Failed.
// The file keeps the text that it has, and a file that it was to replace stays. Cancelling twice changes nothing.
// ErrConflict if there is no work left to cancel.
func (s *Store) Cancel(ctx context.Context, org db.Org, folderID, fileID string) (File, error) {
	return s.updateLocked(ctx, org, folderID, fileID, func(in *Store, f File, w workState) error {
		switch {
		case w.Cancelled:
			return nil
		case f.Status == Completed || f.Status == Failed:
			return db.Conflict("there is no work on '%s' to cancel: its status is '%s'", f.Name, f.Status)
		}
		// A generation that is being parsed is then not wanted any more, and will not be committed.
		if err := in.exec(ctx, `
			UPDATE files
			SET cancelled = true, error = $3, turn = NULL, updated_at = now(),
			    wanted_generation = wanted_generation + (generation < wanted_generation)::integer
			WHERE org = $1 AND key = $2`, org, f.Key, errCancelled); err != nil {
			return err
		}
		if err := in.exec(ctx, `
			UPDATE embed_batches SET turn = NULL
			WHERE org = $1 AND file_key = $2 AND turn IS NOT NULL`, org, f.Key); err != nil {
			return err
		}
		return in.cancelJobs(ctx, f.Key)
	})
}

// workState is the state of a file's work.
type workState struct {
	Generation int  `db:"generation"`
	Wanted     int  `db:"wanted_generation"`
	Cancelled  bool `db:"cancelled"`
}

// updateLocked calls update with a locked file, and returns the updated file.
func (s *Store) updateLocked(ctx context.Context, org db.Org, folderID, fileID string,
	update func(in *Store, f File, w workState) error) (f File, err error) {
	err = s.inTx(ctx, func(in *Store) error {
		w, err := db.One[workState](ctx, in.db, `
			SELECT f.generation, f.wanted_generation, f.cancelled
			FROM files f JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
			WHERE f.org = $1 AND d.id = $2 AND f.id = $3
			FOR NO KEY UPDATE OF f`, org, folderID, fileID)
		if err != nil {
			return ifNotFound(err, errNoFile)
		}
		if f, err = in.File(ctx, org, folderID, fileID, false); err != nil {
			return err
		}
		if err := update(in, f, w); err != nil {
			return err
		}
		f, err = in.File(ctx, org, folderID, fileID, false)
		return err
	})
	return f, err
}
