package userdata

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// header is the first line of an export.
type header struct {
	Kind       string         `json:"kind"` // identity
	ExportedAt time.Time      `json:"exported_at"`
	Counts     map[string]int `json:"counts"`
	user
}

// line is a line of an export: an item with its whole text.
type line struct {
	Kept
	Content json.RawMessage `json:"content,omitempty"` // of a message: its parts as they are stored
	Results []string        `json:"results,omitempty"` // of a message: the texts of it that are stored outside the log
}

// textLine is a line of an export with a part of a file's text.
type textLine struct {
	Kind      string `db:"-" json:"kind"` // file_text
	ID        string `db:"id" json:"id"`
	FirstLine int    `db:"first_line" json:"first_line"` // from 1
	Text      string `db:"text" json:"text"`
}

// exportPage is how many items are read at a time.
const exportPage = 200

// Export writes everything that is a user's own to w, as lines of JSON: the identity with the counts, then the items
// as Memory lists them, with their whole texts. A file is followed by its text in parts; the originals stay where
// they are downloaded.
func (s *Store) Export(ctx context.Context, org db.Org, identity string, w io.Writer) error {
	u, err := s.user(ctx, org, identity)
	if err != nil {
		return err
	}
	h := header{Kind: "identity", ExportedAt: time.Now().UTC(), user: u}
	if h.Counts, err = s.counts(ctx, org, u.Key); err != nil {
		return err
	}
	to := json.NewEncoder(w)
	if err := to.Encode(h); err != nil {
		return err
	}
	for _, k := range kinds {
		if err := s.exportKind(ctx, org, u.Key, k, to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) exportKind(ctx context.Context, org db.Org, user int64, k kind, to *json.Encoder) error {
	for after := (cursor{}); ; {
		items, err := s.items(ctx, org, user, part{k, after, exportPage})
		if err != nil {
			return err
		}
		for _, i := range items {
			l := line{Kept: i}
			if err := s.whole(ctx, org, user, k, &l); err != nil {
				return err
			}
			if err := to.Encode(l); err != nil {
				return err
			}
			if k.name == "file" {
				if err := s.exportText(ctx, org, i.ID, to); err != nil {
					return err
				}
			}
			after = cursor{k.name, i.CreatedAt, i.ID}
		}
		if len(items) < exportPage {
			return nil
		}
	}
}

// whole gives a line the whole text of its item.
func (s *Store) whole(ctx context.Context, org db.Org, user int64, k kind, l *line) error {
	if k.name == "message" {
		type row struct {
			Key     int64           `db:"key"`
			Content json.RawMessage `db:"content"`
			Clipped bool            `db:"clipped"`
		}
		m, err := db.One[row](ctx, s.DB, `
			SELECT key, content, content::text LIKE '%"clip"%' AS clipped FROM messages WHERE org = $1 AND id = $2`,
			org, db.UUID("message-", l.ID))
		if err != nil {
			return err
		}
		l.Content, l.Text = m.Content, nil
		if m.Clipped {
			l.Results, err = s.Recall.WholeTexts(ctx, org, m.Key)
		}
		return err
	}
	if l.Text == nil || l.Chars <= shownChars {
		return nil
	}
	text, err := db.One[*string](ctx, s.DB, `SELECT i.text FROM (`+k.sql+` ) i WHERE i.id = @id`,
		pgx.StrictNamedArgs{"org": org, "user": user, "id": l.ID})
	l.Text = text
	return err
}

// exportText writes the text of a file.
func (s *Store) exportText(ctx context.Context, org db.Org, file string, to *json.Encoder) error {
	for after := -1; ; {
		type numbered struct {
			textLine
			Ordinal int `db:"ordinal"`
		}
		parts, err := db.All[numbered](ctx, s.DB, `
			SELECT f.id, g.first_line, g.text, g.ordinal
			FROM files f JOIN file_segments g ON g.org = $1 AND g.file_key = f.key AND g.generation = f.generation
			WHERE f.org = $1 AND f.id = $2 AND g.ordinal > $3
			ORDER BY g.ordinal
			LIMIT 20`, org, file, after)
		if err != nil || len(parts) == 0 {
			return err
		}
		for _, p := range parts {
			p.Kind, after = "file_text", p.Ordinal
			if err := to.Encode(p.textLine); err != nil {
				return err
			}
		}
	}
}
