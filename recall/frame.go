package recall

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Frame is which messages of a conversation its model sees: as they are those from FirstVisible on and those of Kept, and for the others the
// summary at SummaryAt.
type Frame struct {
	Version      int             `db:"frame" json:"-"` // raised by every change
	FirstVisible int             `db:"first_visible" json:"first_visible"`
	Kept         []int           `db:"kept" json:"kept"`                         // positions before FirstVisible, in order
	SummaryAt    *int            `db:"summary_position" json:"summary_position"` // position of a message of role summary; nil: nothing is hidden
	Clipped      json.RawMessage `db:"clipped" json:"clipped"`                   // how results of tools are shown, in the words of who clips them
	HiddenTokens int64           `db:"hidden_tokens" json:"hidden_tokens"`       // of what is not seen
}

// Usage is what is known of how full a conversation's window is, in tokens.
type Usage struct {
	Fixed            int  `db:"fixed_tokens" json:"-"`    // of what was beside the messages in the prompt that was measured last
	Reported         int  `db:"reported_tokens" json:"-"` // a provider's count of a prompt of this frame; 0: none
	ReportedPosition int  `db:"reported_position" json:"-"`
	Settled          int  `db:"settled_tokens" json:"-"` // in use after the last compaction, until it has grown enough for another; 0: it has
	Warned           bool `db:"warned" json:"-"`         // the model was told how full its window is
}

// Estimate is how full the window is by what was counted when its messages were appended: fit to tell whether to look closer.
func (c Conversation) Estimate() int { return int(c.Tokens-c.HiddenTokens) + c.Fixed }

// Reframe changes what the model sees of a conversation, in a transaction, and appends what the summary of the others says, where stand is
// not nil: its place becomes next.SummaryAt. ErrConflict if the frame is not of next's version any more; whatever was appended since then
// stays in view. A provider's report of the old view is void.
func (s *Store) Reframe(ctx context.Context, org db.Org, c Conversation, next Frame, stand *Draft) (Frame, error) {
	version, err := db.One[int](ctx, s.db, `
		SELECT frame FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL FOR UPDATE`, org, c.Key)
	if err != nil {
		return Frame{}, conversationError(err, c.AgentID, c.ID)
	}
	if version != next.Version {
		return Frame{}, db.Conflict("What the model sees of conversation %s was changed by another request since this one read it", c.ID)
	}
	if stand != nil {
		appended, err := s.Append(ctx, org, c.AgentID, c.ID, []Draft{*stand})
		if err != nil {
			return Frame{}, err
		}
		next.SummaryAt = &appended[0].Position
	}
	if next.Kept == nil {
		next.Kept = []int{}
	}
	next.Version++
	return next, db.Exec(ctx, s.db, `
		UPDATE conversations
		SET frame = @version, first_visible = @first, kept = @kept, summary_position = @summary, clipped = @clipped, hidden_tokens = @hidden,
		    reported_tokens = 0, reported_position = 0, settled_tokens = 0, warned = false, updated_at = now()
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": org, "key": c.Key, "version": next.Version, "first": next.FirstVisible, "kept": next.Kept,
			"summary": next.SummaryAt, "clipped": clippedOr(next.Clipped), "hidden": next.HiddenTokens})
}

func clippedOr(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage(`[]`)
	}
	return raw
}

// Report keeps what a provider counted of a prompt whose last message was at a position. Of an earlier one than is known, or of a message
// that is not there, nothing is kept.
func (s *Store) Report(ctx context.Context, org db.Org, conversation int64, position, tokens int) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET reported_tokens = $4, reported_position = $3
		WHERE org = $1 AND key = $2 AND $3 BETWEEN greatest(reported_position, first_visible) AND messages`, org, conversation, position, tokens)
	return db.Error(err)
}

// Warn notes that a conversation's model was told how full its window is; it says whether this was the first time in its frame since usage
// fell below.
func (s *Store) Warn(ctx context.Context, org db.Org, c Conversation) (first bool, err error) {
	tag, err := s.db.Exec(ctx, `UPDATE conversations SET warned = true WHERE org = $1 AND key = $2 AND frame = $3 AND NOT warned`,
		org, c.Key, c.Version)
	return tag.RowsAffected() > 0, db.Error(err)
}

// Gauge keeps what was found of how full a conversation's window is, unless its frame is another by now.
func (s *Store) Gauge(ctx context.Context, org db.Org, conversation int64, frame int, u Usage) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET fixed_tokens = $4, settled_tokens = $5, warned = $6
		WHERE org = $1 AND key = $2 AND frame = $3 AND (fixed_tokens, settled_tokens, warned) IS DISTINCT FROM ($4::integer, $5::integer, $6::boolean)`,
		org, conversation, frame, u.Fixed, u.Settled, u.Warned)
	return db.Error(err)
}
