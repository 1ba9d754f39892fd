package working

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// NewEntry is an entry based on the message at position Seq of the agent's log.
type NewEntry struct {
	Field Field
	Text  string
	Seq   int64
}

// Add adds an entry to a conversation's record. In a field with a single entry, it replaces that entry. ErrInvalid if
// the entry breaks a rule.
func (s *Store) Add(ctx context.Context, org db.Org, t Target, e NewEntry) error {
	_, err := s.change(ctx, org, t, func(txStore *Store, l log, before *row) (Record, error) {
		after := before.Record.clone()
		redacted, err := txStore.Recall.Redactor(ctx, txStore.DB, org)
		if err != nil {
			return after, err
		}
		c, err := Change{Field: e.Field, Text: redacted(e.Text)}.checked(after)
		if err != nil {
			return after, err
		}
		if indexOf(after.Entries(e.Field), c.Text) >= 0 {
			return before.Record, nil
		}
		if err := c.apply(&after, func() (Entry, error) { return Entry{Text: c.Text, Seq: e.Seq}, nil }); err != nil {
			return after, err
		}
		return after, checkSize(before.Record, after, t.Window)
	})
	return err
}

// Predecessor is the conversation that another one continues.
type Predecessor struct {
	Key int64
	ID  string
}

// Continue copies the record of a conversation to the one that continues it, and names it there.
func (s *Store) Continue(ctx context.Context, org db.Org, from Predecessor, to recall.Conversation) error {
	source, err := s.read(ctx, org, from.Key)
	if err != nil {
		return err
	}
	source.Record.Continues = from.ID
	t := Target{AgentID: to.AgentID, Conversation: to.ID, Author: Author{Kind: ByHandover}}
	return s.carry(ctx, org, t, source.Record)
}
