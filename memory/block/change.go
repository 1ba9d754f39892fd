package block

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Target names the block to change, the author of the change, and the expected state of the block.
type Target struct {
	ID       string
	Author   string
	Expected Expected
}

// Update changes a block, and keeps its previous version. ErrInvalid if the change breaks a rule; *MismatchError if the
// block is not as expected.
func (s *Store) Update(ctx context.Context, org db.Org, t Target, u Update) (Block, error) {
	if err := db.CheckTags(u.Tags); err != nil {
		return Block{}, err
	}
	return s.change(ctx, org, t, func(b *Block) error {
		set(&b.Label, u.Label)
		set(&b.Limit, u.Limit)
		set(&b.ReadOnly, u.ReadOnly)
		set(&b.Hidden, u.Hidden)
		set(&b.Value, u.Value)
		b.Value, b.Description = db.Clean(b.Value), cmp.Or(u.Description, b.Description)
		if u.Tags != nil {
			b.Tags = db.Tags(u.Tags)
		}
		if u.Metadata != nil {
			b.Metadata = u.Metadata
		}
		return nil
	})
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// change changes a block under its lock, and appends an event to the log of each agent that has the block. If do leaves
// the block unchanged, there is no new version and no event.
func (s *Store) change(ctx context.Context, org db.Org, t Target, do func(*Block) error) (Block, error) {
	var changed Block
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		before, err := txStore.lock(ctx, org, t.ID)
		if err != nil {
			return err
		}
		if err := t.Expected.check(before); err != nil {
			return err
		}
		after := before
		if err := do(&after); err != nil {
			return err
		}
		if err := cmp.Or(checkLabel(after.Label), checkSize(after.Label, after.Value, after.Limit, t.Author)); err != nil {
			return err
		}
		changed, err = txStore.write(ctx, org, t.Author, before, after)
		return err
	})
	return changed, err
}

func (s *Store) write(ctx context.Context, org db.Org, author string, before, after Block) (Block, error) {
	if !sameVersion(before, after) {
		after.Version++
	}
	changed, err := db.One[Block](ctx, s.DB, `
		UPDATE blocks AS b
		SET label = @label, description = @description, value = @value, limit_chars = @limit, read_only = @read_only,
		    hidden = @hidden, tags = @tags, metadata = @metadata, version = @version, updated_at = now()
		WHERE org = @org AND key = @key
		RETURNING `+columns,
		pgx.StrictNamedArgs{"org": org, "key": before.Key, "label": after.Label, "description": after.Description,
			"value": after.Value, "limit": after.Limit, "read_only": after.ReadOnly, "hidden": after.Hidden,
			"tags": after.Tags, "metadata": after.Metadata, "version": after.Version})
	if err != nil {
		return Block{}, err
	}
	if after.Label != before.Label {
		if _, err := s.DB.Exec(ctx, `UPDATE agent_blocks SET label = $3 WHERE org = $1 AND block_key = $2`, org, before.Key,
			after.Label); err != nil {
			return Block{}, labelError(err, after.Label)
		}
	}
	if changed.Version == before.Version {
		return changed, nil
	}
	if err := s.record(ctx, org, author, changed); err != nil {
		return Block{}, err
	}
	return changed, s.appendToAgents(ctx, org, changed, event.BlockChanged)
}

// sameVersion reports whether two blocks are equal in everything that a version stores.
func sameVersion(a, b Block) bool {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return a.Label == b.Label && a.Value == b.Value && a.Limit == b.Limit && a.ReadOnly == b.ReadOnly &&
		text(a.Description) == text(b.Description)
}
