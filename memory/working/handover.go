package working

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// NewEntry is an entry that rests on a message of the agent's log, by its position.
type NewEntry struct {
	Field Field
	Text  string
	Seq   int64
}

// Add gives a conversation's record an entry: the only one of a field with one entry. ErrInvalid if it breaks a rule.
func (s *Store) Add(ctx context.Context, org db.Org, t Target, e NewEntry) error {
	_, err := s.change(ctx, org, t, func(in *Store, l log, before *row) (Record, error) {
		after := before.Record.clone()
		redacted, err := in.Recall.Redactor(ctx, in.DB, org)
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
		return after, checkSize(before.Record, after)
	})
	return err
}

// Continue gives a conversation the record that another one has, by the key of that.
func (s *Store) Continue(ctx context.Context, org db.Org, from int64, to recall.Conversation) error {
	was, err := s.read(ctx, org, from)
	if err != nil || was.Record.IsEmpty() {
		return err
	}
	t := Target{AgentID: to.AgentID, Conversation: to.ID, Author: Author{Kind: ByHandover}}
	return s.carry(ctx, org, t, was.Record)
}
