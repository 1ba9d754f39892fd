package userdata

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// Change is the new text of one of a user's items: of a block, a passage or a memory file.
type Change struct {
	ID   string
	Text string
}

// Change changes texts of a user's items, all or none. It returns the items as they are then, in the order of the
// changes. ErrNotFound if an item is not the user's; ErrInvalid if it is of a kind that is not changed, or the text
// breaks a rule of its memory.
func (s *Store) Change(ctx context.Context, org db.Org, identity string, changes []Change) (changed []Kept, err error) {
	u, err := s.user(ctx, org, identity)
	if err != nil {
		return nil, err
	}
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := &Store{DB: tx, Archival: s.Archival.With(tx), MemoryFiles: s.MemoryFiles.With(tx)}
		changed = []Kept{}
		for _, c := range changes {
			before, k, err := inTx.item(ctx, org, u.Key, c.ID)
			if err == nil {
				err = inTx.change(ctx, org, before, c)
			}
			if err != nil {
				return err
			}
			after, err := inTx.one(ctx, org, u.Key, k, c.ID)
			if err != nil {
				return err
			}
			changed = append(changed, after)
		}
		return nil
	})
	return changed, err
}

// changeable maps the prefix of ids → the kind of items whose text is changed.
var changeable = map[string]string{"block-": "block", "passage-": "passage", "memfile-": "memory_file"}

// item returns an item of the user by its id, with its kind.
func (s *Store) item(ctx context.Context, org db.Org, user int64, id string) (Kept, kind, error) {
	for prefix, name := range changeable {
		if strings.HasPrefix(id, prefix) {
			k := kinds[slices.Index(Kinds(), name)]
			i, err := s.one(ctx, org, user, k, id)
			return i, k, err
		}
	}
	return Kept{}, kind{}, db.Invalid("%s is no block, passage or memory file; only their texts are changed", db.Short(id))
}

// one returns an item of a kind by its id. ErrNotFound if it is not the user's, or was deleted.
func (s *Store) one(ctx context.Context, org db.Org, user int64, k kind, id string) (Kept, error) {
	i, err := db.One[Kept](ctx, s.DB, `
		SELECT '`+k.name+`' AS kind, i.id, i.of, i.name, left(i.text, @shown::integer) AS text,
		       coalesce(char_length(i.text), 0) AS chars, i.deleted, i.created_at
		FROM (`+k.sql+`) i WHERE i.id = @id AND NOT i.deleted`,
		pgx.StrictNamedArgs{"org": org, "user": user, "id": id, "shown": shownChars})
	return i, db.OrNotFound(err, "The user has no %s with ID %s; nothing was changed",
		strings.ReplaceAll(k.name, "_", " "), db.Short(id))
}

// change writes the text of an item.
func (s *Store) change(ctx context.Context, org db.Org, before Kept, c Change) error {
	var err error
	switch before.Kind {
	case "block":
		_, err = (&block.Store{DB: s.DB}).Update(ctx, org, block.Target{ID: c.ID, Author: block.OperatorAuthor},
			block.Update{Value: &c.Text})
	case "passage":
		_, err = s.Archival.UpdatePassage(ctx, org, archival.Of(""), c.ID, archival.PassageUpdate{Text: &c.Text})
	case "memory_file":
		_, err = s.MemoryFiles.Write(ctx, memoryfile.At{Org: org, Tree: *before.Of, Author: db.Provenance{}.Or(ctx)},
			*before.Name, c.Text, "")
	}
	return err
}
