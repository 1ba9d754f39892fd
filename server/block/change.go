package block

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Target names the block of a change, who makes it, and what the block is expected to be.
type Target struct {
	ID       string
	Author   string
	Expected Expected
}

// Update changes a block and keeps what it was. ErrInvalid if the change breaks a rule, a
// *MismatchError if the block is not as expected.
func (s *Store) Update(ctx context.Context, org db.Org, t Target, u Update) (Block, error) {
	if err := db.CheckTags(u.Tags); err != nil {
		return Block{}, err
	}
	return s.change(ctx, org, t, func(b *Block) error {
		set(&b.Label, u.Label)
		set(&b.Limit, u.Limit)
		set(&b.ReadOnly, u.ReadOnly)
		set(&b.Hidden, u.Hidden)
		if u.Value != nil {
			b.Value = db.Clean(*u.Value)
		}
		if u.Description != nil {
			b.Description = u.Description
		}
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

// change changes a block under its lock, and appends the event to all agents that have it. What changes nothing makes
// no version.
func (s *Store) change(ctx context.Context, org db.Org, t Target, do func(*Block) error) (Block, error) {
	var changed Block
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		before, err := in.lock(ctx, org, t.ID)
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
		if err := checkLabel(after.Label); err != nil {
			return err
		}
		if err := checkSize(after.Label, after.Value, after.Limit); err != nil {
			return err
		}
		changed, err = in.write(ctx, org, t.Author, before, after)
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
		    hidden = @hidden,
		    tags = @tags, metadata = @metadata, version = @version, updated_at = now()
		WHERE org = @org AND key = @key
		RETURNING `+columns,
		pgx.StrictNamedArgs{"org": org, "key": before.Key, "label": after.Label, "description": after.Description,
			"value": after.Value,
			"limit": after.Limit, "read_only": after.ReadOnly, "hidden": after.Hidden, "tags": after.Tags,
			"metadata": after.Metadata,
			"version":  after.Version})
	if err != nil {
		return Block{}, labelError(err, after.Label)
	}
	if changed.Version == before.Version {
		return changed, nil
	}
	if err := s.record(ctx, org, author, changed); err != nil {
		return Block{}, err
	}
	return changed, s.tell(ctx, org, changed, event.BlockChanged)
}

// sameVersion reports whether a version would say the same of both.
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
