package files

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// PurgeArgs is the job that deletes the rows of a folder that was deleted.
type PurgeArgs struct {
	Org       db.Org `json:"org"` // that it belonged to
	FolderKey int64  `json:"folder_key" river:"unique"`
}

// Kind implements river.JobArgs.
func (PurgeArgs) Kind() string { return "purge_folder" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PurgeArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueUpkeep) }

// DeleteFolder deletes a folder with all its files, and closes and detaches it in every agent. It is gone at once, and
// its name is free: from then on it belongs to no organization. A job clears its rows away, a few at a time.
func (s *Store) DeleteFolder(ctx context.Context, org db.Org, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		folder, err := in.Folder(ctx, org, id)
		if err != nil {
			return err
		}
		if err := in.lockFolder(ctx, org, folder.Key, "UPDATE"); err != nil {
			return err
		}
		agents, err := db.All[string](ctx, tx, `
			SELECT agent_id FROM agent_folders WHERE org = $1 AND folder_key = $2 ORDER BY agent_id`, org, folder.Key)
		if err != nil {
			return err
		}
		for _, agent := range agents {
			if err := in.openSet(org, agent).detach(ctx, folder); err != nil {
				return err
			}
		}
		if err := in.disown(ctx, org, folder); err != nil {
			return err
		}
		return in.enqueue(ctx, PurgeArgs{Org: org, FolderKey: folder.Key})
	})
}

// disown takes a folder from its organization: no statement finds it any more, nor what is in it.
func (s *Store) disown(ctx context.Context, org db.Org, folder Folder) error {
	_, err := s.db.Exec(ctx, `
		WITH gone AS (
			UPDATE folders SET org = NULL, updated_at = now() WHERE org = $1 AND key = $2 RETURNING id, created_at, key
		)
		INSERT INTO deleted_places (id, org, created_at, key) SELECT id, $1, created_at, key FROM gone`, org, folder.Key)
	return err
}

// purgeWorker deletes the rows of deleted folders.
type purgeWorker struct{ worker[PurgeArgs] }

// purgeTime is how long a job goes on before it gives others their turn, and itself a new one.
const purgeTime = 20 * time.Second

// Work implements river.Worker.
func (w *purgeWorker) Work(ctx context.Context, job *river.Job[PurgeArgs]) error {
	for end := time.Now().Add(purgeTime); time.Now().Before(end); {
		done, err := w.store.purge(ctx, job.Args)
		if err != nil || done {
			return err
		}
	}
	return river.JobSnooze(0)
}

// What one transaction of a purge deletes at most, unless it is a single file.
const (
	purgeFiles  = 500
	purgeChunks = 5000
)

// purge deletes some files of a folder that no organization has, or at last the folder; done says that nothing is left
// of it.
func (s *Store) purge(ctx context.Context, job PurgeArgs) (done bool, err error) {
	type doomed struct {
		Key    int64 `db:"key"`
		Chunks int   `db:"chunks"`
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		list, err := db.All[doomed](ctx, tx, `
			SELECT key, chunks FROM files
			WHERE org = $1 AND folder_key = (SELECT key FROM folders WHERE key = $2 AND org IS NULL)
			ORDER BY created_at, key
			LIMIT $3
			FOR UPDATE`, job.Org, job.FolderKey, purgeFiles)
		if err != nil {
			return err
		}
		if done = len(list) == 0; done {
			_, err := tx.Exec(ctx, `DELETE FROM folders WHERE key = $1 AND org IS NULL`, job.FolderKey)
			return err
		}
		var keys []int64
		for i, chunks := 0, 0; i < len(list) && (i == 0 || chunks+list[i].Chunks <= purgeChunks); i++ {
			keys = append(keys, list[i].Key)
			chunks += list[i].Chunks
		}
		_, err = tx.Exec(ctx, `DELETE FROM files WHERE org = $1 AND key = ANY ($2)`, job.Org, keys)
		return err
	})
	return done, err
}
