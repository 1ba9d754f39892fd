package files

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// Reparse parses a file again. The old text stays until the new one is ready. ErrConflict if the file is being parsed.
func (s *Store) Reparse(ctx context.Context, org db.Org, folderID, fileID string) (File, error) {
	return s.updateLocked(ctx, org, folderID, fileID, func(in *Store, f File, _ workState) error {
		if f.Status == Pending || f.Status == Parsing {
			return db.Conflict("'%s' is not parsed yet: its status is '%s'", f.Name, f.Status)
		}
		return in.queueParsing(ctx, org, []int64{f.Key})
	})
}

// queueParsing queues the next generation of files in one folder. The caller holds the files' locks.
func (s *Store) queueParsing(ctx context.Context, org db.Org, fileKeys []int64) error {
	type wanted struct {
		Key        int64  `db:"key"`
		FolderKey  int64  `db:"folder_key"`
		Generation int    `db:"wanted_generation"`
		Size       int64  `db:"size_bytes"`
		MediaType  string `db:"media_type"`
	}
	files, err := db.All[wanted](ctx, s.db, `
		SELECT key, folder_key, wanted_generation, size_bytes, media_type FROM files
		WHERE org = $1 AND key = ANY ($2)
		ORDER BY key`, org, fileKeys)
	if err != nil {
		return err
	}
	jobs := make([]river.JobArgs, len(files))
	keys, ends := make([]int64, len(files)), make([]time.Time, len(files))
	next := map[string]queue.Turn{} // queue → turn
	for i, f := range files {
		name := queueOf(f.Size, f.MediaType)
		if _, known := next[name]; !known {
			if next[name], err = s.parseTurn(ctx, org, f.FolderKey, f.Size, f.MediaType); err != nil {
				return err
			}
		}
		jobs[i] = ParseArgs{Org: org, FileKey: f.Key, Generation: f.Generation + 1, size: f.Size, mediaType: f.MediaType,
			Start: queue.At(next[name].Start)}
		next[name] = next[name].Next(cost(f.Size))
		keys[i], ends[i] = f.Key, next[name].Start
	}
	if err := s.exec(ctx, `
		UPDATE files f
		SET wanted_generation = f.wanted_generation + 1, parse_started_at = NULL, error = NULL, cancelled = false,
		    turn = u.turn, updated_at = now()
		FROM unnest($2::bigint[], $3::timestamptz[]) AS u (key, turn)
		WHERE f.org = $1 AND f.key = u.key`, org, keys, ends); err != nil {
		return err
	}
	return s.enqueue(ctx, jobs...)
}

// ReparseFolder parses every file of a folder again, except those that are being parsed. It returns how many files the
// folder has. A job queues them, page by page.
func (s *Store) ReparseFolder(ctx context.Context, org db.Org, folderID string) (int, error) {
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return 0, err
	}
	type extent struct {
		Files int   `db:"files"`
		Last  int64 `db:"last"`
	}
	e, err := db.One[extent](ctx, s.db, `
		SELECT count(*) AS files, coalesce(max(key), 0) AS last FROM files
		WHERE org = $1 AND folder_key = $2`, org, folder.Key)
	if err != nil || e.Files == 0 {
		return 0, err
	}
	return e.Files, s.inTx(ctx, func(in *Store) error {
		return in.enqueue(ctx, ReparseArgs{Org: org, FolderKey: folder.Key, LastKey: e.Last})
	})
}

// reparseFiles is how many files one job queues.
const reparseFiles = 500

// reparsePage queues the next files of a folder, and the job for those behind them.
func (s *Store) reparsePage(ctx context.Context, job *river.Job[ReparseArgs]) error {
	a := job.Args
	return s.inTx(ctx, func(in *Store) error {
		type row struct {
			Key  int64 `db:"key"`
			Work bool  `db:"work"`
		}
		rows, err := db.All[row](ctx, in.db, `
			SELECT key, generation < wanted_generation AND error IS NULL AS work FROM files
			WHERE org = @org AND folder_key = (
				SELECT key FROM folders WHERE org = @org AND key = @folder AND deleted_at IS NULL)
			  AND key > @after AND key <= @last
			ORDER BY key
			LIMIT @page
			FOR NO KEY UPDATE`,
			pgx.StrictNamedArgs{"org": a.Org, "folder": a.FolderKey, "after": a.AfterKey, "last": a.LastKey,
				"page": reparseFiles})
		if err != nil || len(rows) == 0 {
			return err
		}
		var keys []int64
		for _, r := range rows {
			if !r.Work {
				keys = append(keys, r.Key)
			}
			a.AfterKey = r.Key
		}
		if err := in.queueParsing(ctx, a.Org, keys); err != nil {
			return fmt.Errorf("queue files to be parsed again: %w", err)
		}
		return in.enqueue(ctx, a)
	})
}

// Retry resumes the work on a file that failed or was cancelled. ErrConflict for any other file.
func (s *Store) Retry(ctx context.Context, org db.Org, folderID, fileID string) (File, error) {
	return s.updateLocked(ctx, org, folderID, fileID, func(in *Store, f File, w workState) error {
		if f.Status != Failed {
			return db.Conflict("'%s' has not failed: its status is '%s'; only a failed or cancelled file is tried again",
				f.Name, f.Status)
		}
		if w.Generation < w.Wanted {
			return in.queueParsing(ctx, org, []int64{f.Key})
		}
		if err := in.exec(ctx, `
			UPDATE files SET cancelled = false, error = NULL, updated_at = now()
			WHERE org = $1 AND key = $2`, org, f.Key); err != nil {
			return err
		}
		return in.queueBatches(ctx, org, in.space(), []int64{f.Key}, embedWidth)
	})
}
