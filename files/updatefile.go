package files

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/rank"
)

// FileUpdate changes a file. Fields that are nil stay.
type FileUpdate struct {
	Name     *string         // may have slashes
	Metadata json.RawMessage // an object
}

// UpdateFile changes a file, which keeps its id, its text and its vectors. ErrInvalid for a name that no file may have,
// ErrConflict if another file of the folder has the name, or the file is to replace another one.
func (s *Store) UpdateFile(ctx context.Context, org db.Org, folderID, fileID string, u FileUpdate) (File, error) {
	name := ""
	if u.Name != nil {
		var err error
		if name, err = CleanPath(*u.Name); err != nil {
			return File{}, err
		}
	}
	f, err := s.updateLocked(ctx, org, folderID, fileID, func(in *Store, f File, _ workState) error {
		if name == "" || name == f.Name {
			return in.setFile(ctx, org, f, f.Name, u.Metadata)
		}
		return inOrder(
			func() error { return in.setFile(ctx, org, f, name, u.Metadata) },
			func() error { return in.weighAgain(ctx, org, f.Key) },
			func() error { return in.appendWhereOpen(ctx, org, f.Key, event.FileOpened, f.ID) })
	})
	if errors.Is(err, db.ErrConflict) && name != "" {
		err = db.Conflict("the folder has a file named '%s' already, or this file is to replace another one", name)
	}
	return f, err
}

func (s *Store) setFile(ctx context.Context, org db.Org, f File, name string, metadata json.RawMessage) error {
	changed, err := db.One[bool](ctx, s.db, `
		UPDATE files SET name = $3, metadata = coalesce($4, metadata), updated_at = now()
		WHERE org = $1 AND key = $2 AND (replaces IS NULL OR name = $3)
		RETURNING true`, org, f.Key, name, metadata)
	if !changed && errors.Is(err, db.ErrNotFound) {
		return db.Conflict("'%s' is to replace another file; wait until it has its text", f.Name)
	}
	return db.Error(err)
}

// weighAgain computes the words of a file's chunks again, because they include the file's name.
func (s *Store) weighAgain(ctx context.Context, org db.Org, fileKey int64) error {
	for after := int64(0); ; {
		rows, err := db.All[rank.Outdated](ctx, s.db, `
			SELECT r.key, 0::bigint AS owner, f.name || E'\n' || r.heading || E'\n' || r.text AS text,
			       CASE WHEN f.language_given THEN f.language END AS language
			FROM chunks r JOIN files f ON f.org = r.org AND f.key = r.file_key
			WHERE r.org = @org AND f.org = @org AND f.key = @file AND r.key > @after
			ORDER BY r.key LIMIT @limit`,
			pgx.StrictNamedArgs{"org": org, "file": fileKey, "after": after, "limit": rank.ReweighRows})
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			rows[i].Text = withDecoded(rows[i].Text)
		}
		if err := s.search.StoreWords(ctx, s.tx, org, rows); err != nil {
			return err
		}
		after = rows[len(rows)-1].Key
	}
}
