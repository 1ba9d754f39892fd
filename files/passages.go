package files

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Passage is a chunk as Letta's API shows it.
type Passage struct {
	Key       int64  `db:"key" json:"-"`
	ID        string `db:"id" json:"id"`
	Text      string `db:"text" json:"text"`
	FolderID  string `db:"folder_id" json:"source_id"`
	FileID    string `db:"file_id" json:"file_id"`
	FileName  string `db:"file_name" json:"file_name"`
	Place     `json:"metadata"`
	Tags      []string  `db:"tags" json:"tags"` // always empty
	CreatedAt time.Time `db:"created_at" json:"created_at"`
}

// Place is the place of a passage in its file.
type Place struct {
	FirstLine int    `db:"first_line" json:"first_line"`
	LastLine  int    `db:"last_line" json:"last_line"`
	FirstPage *int   `db:"first_page" json:"first_page"` // page, slide or sheet, from 1; nil if the file has none
	LastPage  *int   `db:"last_page" json:"last_page"`
	Heading   string `db:"heading" json:"heading"`
}

// Passages lists a folder's chunks in the order in which they were made. If fileID is not empty, it lists only that
// file's chunks.
func (s *Store) Passages(ctx context.Context, org db.Org, folderID, fileID string, p db.Page) ([]Passage, error) {
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return nil, err
	}
	args := pgx.StrictNamedArgs{"org": org, "folder": folder.Key}
	where := `org = @org AND folder_key = @folder`
	if fileID != "" {
		args["file"] = fileID
		where += ` AND file_key = (SELECT f.key FROM files f WHERE f.org = @org AND f.id = @file)`
	}
	place := `SELECT key FROM chunks WHERE ` + where + ` AND id = @place`
	page := p.ByUUID("passage-").Clauses("key", place, args)
	list, err := db.All[Passage](ctx, s.db, `
		SELECT c.key, 'passage-' || c.id AS id, c.text, d.id AS folder_id, f.id AS file_id, f.name AS file_name,
		       c.first_line, c.last_line, c.first_page, c.last_page, c.heading, '{}'::text[] AS tags, f.created_at
		FROM (SELECT * FROM chunks WHERE `+where+` AND `+page.Where+page.Order+`) c
		JOIN files f ON f.org = @org AND f.key = c.file_key JOIN folders d ON d.org = @org AND d.key = c.folder_key
		`+page.Order, args)
	if page.Reversed {
		slices.Reverse(list)
	}
	return list, err
}
