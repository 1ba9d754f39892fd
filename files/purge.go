package files

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
)

// DeleteFolder deletes a folder with all its files, and detaches it from every agent. At once no request finds the
// folder, and its name is free. A job then deletes its rows in batches.
func (s *Store) DeleteFolder(ctx context.Context, org db.Org, id string) error {
	return s.inTx(ctx, func(in *Store) error {
		folder, err := in.Folder(ctx, org, id)
		if err != nil {
			return err
		}
		if err := in.lockFolder(ctx, org, folder.Key, "UPDATE"); err != nil {
			return err
		}
		agents, err := db.All[string](ctx, in.db, `
			SELECT agent_id FROM agent_folders WHERE org = $1 AND folder_key = $2 ORDER BY agent_id`, org, folder.Key)
		if err != nil {
			return err
		}
		for _, agent := range agents {
			if err := in.openSet(org, Of(agent)).detach(ctx, folder); err != nil {
				return err
			}
		}
		return inOrder(
			func() error { return in.disown(ctx, org, folder) },
			func() error { return in.enqueue(ctx, PurgeArgs{Org: org, FolderKey: folder.Key}) })
	})
}

// disown removes a folder from its organization, so that no statement of the organization finds the folder or its
// files.
func (s *Store) disown(ctx context.Context, org db.Org, folder Folder) error {
	return s.exec(ctx, `
		WITH gone AS (
			UPDATE folders SET deleted_at = now(), updated_at = now() WHERE org = $1 AND key = $2 RETURNING id, created_at, key
		)
		INSERT INTO deleted_places (id, org, created_at, key) SELECT id, $1, created_at, key FROM gone`, org, folder.Key)
}

// purgeTime is how long a job works before it goes back to the queue and lets other jobs run.
const purgeTime = 20 * time.Second

// purgeFolder deletes the rows of a deleted folder.
func (s *Store) purgeFolder(ctx context.Context, job *river.Job[PurgeArgs]) error {
	for end := time.Now().Add(purgeTime); time.Now().Before(end); {
		done, err := s.purge(ctx, job.Args)
		if err != nil || done {
			return err
		}
	}
	return river.JobSnooze(0)
}

// The most that one transaction of a purge deletes. A single file may have more chunks.
const (
	purgeFiles  = 500
	purgeChunks = 5000
)

// purge deletes some files of a deleted folder or, if no file is left, the folder itself. done reports that it deleted
// the folder.
func (s *Store) purge(ctx context.Context, job PurgeArgs) (done bool, err error) {
	type deletable struct {
		Key    int64 `db:"key"`
		Chunks int   `db:"chunks"`
	}
	err = s.inTx(ctx, func(in *Store) error {
		list, err := db.All[deletable](ctx, in.db, `
			SELECT key, chunks FROM files
			WHERE org = $1 AND folder_key = (
				SELECT key FROM folders WHERE org = $1 AND key = $2 AND deleted_at IS NOT NULL)
			ORDER BY created_at, key
			LIMIT $3
			FOR UPDATE`, job.Org, job.FolderKey, purgeFiles)
		if err != nil {
			return err
		}
		if done = len(list) == 0; done {
			return in.exec(ctx, `DELETE FROM folders WHERE org = $1 AND key = $2 AND deleted_at IS NOT NULL`,
				job.Org, job.FolderKey)
		}
		var keys []int64
		for i, chunks := 0, 0; i < len(list) && (i == 0 || chunks+list[i].Chunks <= purgeChunks); i++ {
			keys = append(keys, list[i].Key)
			chunks += list[i].Chunks
		}
		return in.deleteFiles(ctx, job.Org, `r.key = ANY ($2)`, keys)
	})
	return done, err
}

// DeleteOfUser deletes a user's folders with their files, at once and not later as DeleteFolder does. It returns how
// many files there were.
func (s *Store) DeleteOfUser(ctx context.Context, org db.Org, user int64) (files int, err error) {
	type own struct {
		Key     int64  `db:"key"`
		ID      string `db:"id"`
		Deleted bool   `db:"deleted"`
		Files   int    `db:"files"`
	}
	folders, err := db.All[own](ctx, s.db, `
		SELECT key, id, deleted_at IS NOT NULL AS deleted,
		       (SELECT count(*) FROM files f WHERE f.org = $1 AND f.folder_key = d.key) AS files
		FROM folders d WHERE org = $1 AND user_key = $2 ORDER BY key`, org, user)
	for _, f := range folders {
		if err == nil && !f.Deleted {
			err = ifNotFound(s.DeleteFolder(ctx, org, f.ID), nil)
		}
		for done := false; err == nil && !done; {
			done, err = s.purge(ctx, PurgeArgs{Org: org, FolderKey: f.Key})
		}
		if err != nil {
			break
		}
		files += f.Files
	}
	if err == nil {
		err = s.ForgetOpened(ctx, org, user)
	}
	return files, err
}

// ForgetOpened deletes a user's lists of open files.
func (s *Store) ForgetOpened(ctx context.Context, org db.Org, user int64) error {
	return s.exec(ctx, `DELETE FROM agent_files WHERE org = $1 AND user_key = $2 AND user_key <> 0`, org, user)
}
