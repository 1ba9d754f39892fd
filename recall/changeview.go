package recall

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ChangeView replaces what the model sees of a conversation, in a transaction. If summary is not nil, it is appended
// and its position becomes next.SummaryAt. ErrConflict if the view's version is no longer next.Version. Messages
// appended since next was read stay in view. The provider's report about the old view is dropped.
func (s *Store) ChangeView(ctx context.Context, org db.Org, c Conversation, next ContextView, summary *Draft,
) (ContextView, error) {
	version, err := db.One[int](ctx, s.db, `
		SELECT frame FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`, org, c.Key)
	if err != nil {
		return ContextView{}, s.conversationError(ctx, org, err, c.AgentID, c.ID)
	}
	if version != next.Version {
		return ContextView{}, db.Conflict("What the model sees of conversation %s was changed by another request "+
			"since this one read it", c.ID)
	}
	if summary != nil {
		appended, err := s.Append(ctx, org, c.AgentID, c.ID, []Draft{*summary})
		if err != nil {
			return ContextView{}, err
		}
		next.SummaryAt = &appended[0].Position
	}
	if next.Kept == nil {
		next.Kept = []int{}
	}
	if next.Clipped == nil {
		next.Clipped = json.RawMessage(`[]`)
	}
	next.Version++
	return next, db.Exec(ctx, s.db, endFlushes("@org", "@key")+`
		UPDATE conversations
		SET frame = @version, first_visible = @first, kept = @kept, summary_position = @summary, clipped = @clipped,
		    hidden_tokens = @hidden, reported_tokens = 0, reported_position = 0, settled_tokens = 0, warned = false,
		    updated_at = now()
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": org, "key": c.Key, "version": next.Version, "first": next.FirstVisible,
			"kept": next.Kept, "summary": next.SummaryAt, "clipped": next.Clipped, "hidden": next.HiddenTokens})
}

// RecordReport stores a provider's token count of a prompt that ended with the message at position. It does nothing if
// the stored report is of a later position, or if there is no message at position.
func (s *Store) RecordReport(ctx context.Context, org db.Org, conversation int64, position, tokens int) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET reported_tokens = $4, reported_position = $3
		WHERE org = $1 AND key = $2 AND $3 BETWEEN greatest(reported_position, first_visible) AND messages`,
		org, conversation, position, tokens)
	return db.Error(err)
}

// MarkWarned records that a conversation's model was warned of its full window. first is false if that was recorded
// already. A change of the view resets the record, and so does usage below the warning.
func (s *Store) MarkWarned(ctx context.Context, org db.Org, c Conversation) (first bool, err error) {
	tag, err := s.db.Exec(ctx, `
		UPDATE conversations SET warned = true WHERE org = $1 AND key = $2 AND frame = $3 AND NOT warned`,
		org, c.Key, c.Version)
	return tag.RowsAffected() > 0, db.Error(err)
}

// RecordUsage stores how full a conversation's window is, unless the view has changed since version.
func (s *Store) RecordUsage(ctx context.Context, org db.Org, conversation int64, version int, u Usage) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET fixed_tokens = $4, settled_tokens = $5, warned = $6
		WHERE org = $1 AND key = $2 AND frame = $3
		  AND (fixed_tokens, settled_tokens, warned) IS DISTINCT FROM ($4::integer, $5::integer, $6::boolean)`,
		org, conversation, version, u.Fixed, u.Settled, u.Warned)
	return db.Error(err)
}
