package block

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Edit changes the value of the agent's block with a label. The author of the version is the agent. edit is called
// under the block's lock with the current value, and returns the new one. ErrNotFound if the agent has no such block;
// ErrInvalid if the block is read-only or the new value breaks a rule.
func (s *Store) Edit(ctx context.Context, org db.Org, agentID, label string,
	edit func(value string) (string, error)) (Block, error) {
	return s.EditAll(ctx, org, agentID, label, func(b *Block) error {
		value, err := edit(b.Value)
		b.Value = db.Clean(value)
		return err
	})
}

// EditAll is Edit for a change that may also affect the label and the description.
func (s *Store) EditAll(ctx context.Context, org db.Org, agentID, label string, edit func(*Block) error) (Block,
	error) {
	b, err := s.ofAgent(ctx, org, agentID, label)
	if err != nil {
		return Block{}, err
	}
	if b.ReadOnly {
		return Block{}, readOnly(label)
	}
	var changed Block
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		if b, err = txStore.own(ctx, org, agentID, b); err != nil {
			return err
		}
		changed, err = txStore.change(ctx, org, Target{ID: b.ID, Author: agentID}, func(b *Block) error {
			if b.ReadOnly {
				return readOnly(b.Label)
			}
			named := b.Label
			if err := edit(b); err != nil || b.Label == named {
				return err
			}
			return forAll(ctx, "renamed")
		})
		return err
	})
	return changed, err
}

func readOnly(label string) error {
	return db.Invalid("Block %s is read-only and cannot be edited.", label)
}

// ofAgent returns the agent's block with a label. If the agent has none, it returns an ErrNotFound that lists the
// labels of the agent's blocks.
func (s *Store) ofAgent(ctx context.Context, org db.Org, agentID, label string) (Block, error) {
	b, err := s.Labelled(ctx, org, agentID, label)
	if !errors.Is(err, db.ErrNotFound) {
		return b, err
	}
	all, err := s.OfAgent(ctx, org, agentID)
	if err != nil {
		return Block{}, err
	}
	labels := make([]string, len(all))
	for i, b := range all {
		labels[i] = b.Label
	}
	return Block{}, db.NotFound("Block field %s does not exist (available sections = %s)", db.Short(label),
		strings.Join(labels, ", "))
}

// Add creates a block and attaches it to the agent, who is its author. ErrConflict if the agent has a block with that
// label.
func (s *Store) Add(ctx context.Context, org db.Org, agentID string, n New) (created Block, err error) {
	if err := forAll(ctx, "made"); err != nil {
		return Block{}, err
	}
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		if created, err = txStore.Create(ctx, org, agentID, n); err != nil {
			return err
		}
		return txStore.Attach(ctx, org, agentID, created.ID)
	})
	return created, err
}

// Remove detaches the block with a label from an agent, at the agent's request. The block itself stays, because other
// agents and the operator may need it. ErrInvalid if it is read-only.
func (s *Store) Remove(ctx context.Context, org db.Org, agentID, label string) error {
	b, err := s.ofAgent(ctx, org, agentID, label)
	if err != nil {
		return err
	}
	if b.ReadOnly {
		return readOnly(label)
	}
	if err := forAll(ctx, "removed"); err != nil {
		return err
	}
	return s.Detach(ctx, org, agentID, b.ID)
}

// Apply applies a patch to the blocks of an agent, all operations or none. The author of the versions is the agent. It
// returns the blocks that it added or changed.
func (s *Store) Apply(ctx context.Context, org db.Org, agentID string, p Patch) (changed []Block, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		changed = nil
		txStore := s.With(tx)
		for _, o := range p {
			b, err := txStore.apply(ctx, org, agentID, o)
			if err != nil {
				return err
			}
			if o.Kind != DeleteBlock {
				changed = append(changed, b)
			}
		}
		return nil
	})
	return changed, err
}

func (s *Store) apply(ctx context.Context, org db.Org, agentID string, o Operation) (Block, error) {
	switch o.Kind {
	case AddBlock:
		return s.Add(ctx, org, agentID, New{Label: o.Label, Value: o.Value, Description: o.Description})
	case DeleteBlock:
		return Block{}, s.Remove(ctx, org, agentID, o.Label)
	}
	return s.EditAll(ctx, org, agentID, o.Label, func(b *Block) error {
		value, err := o.Apply(b.Value)
		if err != nil {
			return err
		}
		b.Value = db.Clean(value)
		if o.NewLabel != "" {
			b.Label = o.NewLabel
		}
		return nil
	})
}
