package files

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Passage is a chunk in Letta's shape.
type Passage struct {
	Key       int64     `db:"key" json:"-"`
	ID        string    `db:"id" json:"id"`
	Text      string    `db:"text" json:"text"`
	FolderID  string    `db:"folder_id" json:"source_id"`
	FileID    string    `db:"file_id" json:"file_id"`
	FileName  string    `db:"file_name" json:"file_name"`
	Metadata  Place     `db:"-" json:"metadata"`
	Tags      []string  `db:"-" json:"tags"`
	FirstLine int       `db:"first_line" json:"-"`
	LastLine  int       `db:"last_line" json:"-"`
	FirstPage *int      `db:"first_page" json:"-"`
	LastPage  *int      `db:"last_page" json:"-"`
	Heading   string    `db:"heading" json:"-"`
	CreatedAt time.Time `db:"created_at" json:"created_at"`
}

// Place is where in its file a passage stands.
type Place struct {
	FirstLine int    `json:"first_line"`
	LastLine  int    `json:"last_line"`
	FirstPage *int   `json:"first_page"` // of pages, slides or sheets, from 1; nil where the file has none
	LastPage  *int   `json:"last_page"`
	Heading   string `json:"heading"`
}

// Passages lists a folder's chunks, in the order in which they were made.
func (s *Store) Passages(ctx context.Context, org db.Org, folderID string, p db.Page) ([]Passage, error) {
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return nil, err
	}
	args := pgx.StrictNamedArgs{"org": org, "folder": folder.Key}
	place := `SELECT key FROM chunks WHERE org = @org AND folder_key = @folder AND id = @place`
	page := p.ByUUID("passage-").Clauses("key", place, args)
	list, err := db.All[Passage](ctx, s.db, `
		SELECT c.key, 'passage-' || c.id AS id, c.text, d.id AS folder_id, f.id AS file_id, f.name AS file_name,
		       c.first_line, c.last_line, c.first_page, c.last_page, c.heading, f.created_at
		FROM (SELECT * FROM chunks WHERE org = @org AND folder_key = @folder AND `+page.Where+page.Order+`) c
		JOIN files f ON f.key = c.file_key JOIN folders d ON d.key = c.folder_key
		`+page.Order, args)
	if page.Reversed {
		slices.Reverse(list)
	}
	for i, c := range list {
		list[i].Metadata = Place{FirstLine: c.FirstLine, LastLine: c.LastLine, FirstPage: c.FirstPage,
			LastPage: c.LastPage, Heading: c.Heading}
		list[i].Tags = []string{}
	}
	return list, err
}
