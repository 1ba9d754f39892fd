package recall

import (
	"cmp"
	"context"

	"github.com/loci-memory/loci/db"
)

// CancelChild cancels a sub-agent that works, those that work for it, and the runs of all. key is the key of its
// record.
func (s *Store) CancelChild(ctx context.Context, org db.Org, key int64, why string) error {
	return s.cancelChildren(ctx, org, "key", []int64{key}, why)
}

// cancelHidden cancels the sub-agents of hidden conversations: those that work for one, and those that work in one.
func (s *Store) cancelHidden(ctx context.Context, org db.Org, conversations []int64) error {
	return cmp.Or(
		s.cancelChildren(ctx, org, "parent_conversation", conversations,
			"The conversation that it worked for was deleted or reset."),
		s.cancelChildren(ctx, org, "conversation_key", conversations, "Its own conversation or agent was deleted."))
}

// cancelChildren cancels the sub-agents that work and have one of the values in a column, and those that work for them.
func (s *Store) cancelChildren(ctx context.Context, org db.Org, column string, values []int64, why string) error {
	_, err := s.db.Exec(ctx, `
		WITH RECURSIVE ended AS (
			SELECT key, conversation_key FROM children
			WHERE org = $1 AND `+column+` = ANY ($2) AND status = 'working'
			UNION
			SELECT k.key, k.conversation_key
			FROM ended e JOIN children k
			  ON k.org = $1 AND k.parent_conversation = e.conversation_key AND k.status = 'working'
		), marked AS (
			UPDATE children SET status = 'cancelled', result = $3, returned_at = now()
			WHERE org = $1 AND key IN (SELECT key FROM ended) AND status = 'working'
			RETURNING conversation_key
		)
		UPDATE runs SET cancelled_at = now()
		WHERE org = $1 AND status = 'running' AND cancelled_at IS NULL
		  AND conversation_key IN (SELECT conversation_key FROM marked)`, org, values, why)
	return db.Error(err)
}
