package recall

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ContextView says which messages of a conversation its model sees: those from FirstVisible on, those of Kept, and for
// the others the summary at SummaryAt.
type ContextView struct {
	Version      int             `db:"frame" json:"-"` // every change raises it
	FirstVisible int             `db:"first_visible" json:"first_visible"`
	Kept         []int           `db:"kept" json:"kept"`                         // positions before FirstVisible, in order
	SummaryAt    *int            `db:"summary_position" json:"summary_position"` // of the summary; nil: nothing is hidden
	Clipped      json.RawMessage `db:"clipped" json:"clipped"`                   // the caller's list of clipped results
	HiddenTokens int64           `db:"hidden_tokens" json:"hidden_tokens"`       // of the hidden messages
}

// Usage is how full a conversation's window is known to be, in tokens.
type Usage struct {
	Fixed            int  `db:"fixed_tokens" json:"-"`      // of the last measured prompt, without its messages
	Reported         int  `db:"reported_tokens" json:"-"`   // a provider's count of a prompt of this view; 0: none
	ReportedPosition int  `db:"reported_position" json:"-"` // of the last message of that prompt
	Settled          int  `db:"settled_tokens" json:"-"`    // after the last compaction; 0 once usage has grown past it
	Warned           bool `db:"warned" json:"-"`            // the model was warned that its window is nearly full
}

// Estimate returns how full the window is, from the tokens that were counted when its messages were appended. It may be
// wrong; it serves to decide whether a precise count is worth the work.
func (c Conversation) Estimate() int { return int(c.Tokens-c.HiddenTokens) + c.Fixed }

// ChangeView replaces what the model sees of a conversation, in a transaction. If summary is not nil, it is appended
// and its position becomes next.SummaryAt. ErrConflict if the version of the view is no longer that of next. Messages
// that were appended since then stay in view. A provider's report of the old view is dropped.
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
	return next, db.Exec(ctx, s.db, `
		UPDATE conversations
		SET frame = @version, first_visible = @first, kept = @kept, summary_position = @summary, clipped = @clipped,
		    hidden_tokens = @hidden, reported_tokens = 0, reported_position = 0, settled_tokens = 0, warned = false,
		    updated_at = now()
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": org, "key": c.Key, "version": next.Version, "first": next.FirstVisible,
			"kept": next.Kept, "summary": next.SummaryAt, "clipped": next.Clipped, "hidden": next.HiddenTokens})
}

// RecordReport stores a provider's count of a prompt whose last message was at a position. It ignores a position before
// that of the stored report, and one where there is no message.
func (s *Store) RecordReport(ctx context.Context, org db.Org, conversation int64, position, tokens int) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET reported_tokens = $4, reported_position = $3
		WHERE org = $1 AND key = $2 AND $3 BETWEEN greatest(reported_position, first_visible) AND messages`,
		org, conversation, position, tokens)
	return db.Error(err)
}

// MarkWarned records that a conversation's model was warned. first is false if that was recorded already: a change of
// the view and usage below the warning reset it.
func (s *Store) MarkWarned(ctx context.Context, org db.Org, c Conversation) (first bool, err error) {
	tag, err := s.db.Exec(ctx, `
		UPDATE conversations SET warned = true WHERE org = $1 AND key = $2 AND frame = $3 AND NOT warned`,
		org, c.Key, c.Version)
	return tag.RowsAffected() > 0, db.Error(err)
}

// RecordUsage stores how full a conversation's window is, unless its view has another version.
func (s *Store) RecordUsage(ctx context.Context, org db.Org, conversation int64, version int, u Usage) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET fixed_tokens = $4, settled_tokens = $5, warned = $6
		WHERE org = $1 AND key = $2 AND frame = $3
		  AND (fixed_tokens, settled_tokens, warned) IS DISTINCT FROM ($4::integer, $5::integer, $6::boolean)`,
		org, conversation, version, u.Fixed, u.Settled, u.Warned)
	return db.Error(err)
}
