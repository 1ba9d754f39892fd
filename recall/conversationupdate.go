package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ConversationUpdate changes the fields that are not nil. Model settings change one by one; null unsets one.
type ConversationUpdate struct {
	Summary       *string
	Description   *string
	Model         *string
	ModelSettings json.RawMessage
	WindowLimit   *int
	Compaction    json.RawMessage // replaces the stored object; JSON's null resets it; nil keeps it
	Archived      *bool
	LastMessageAt *time.Time
}

// UpdateConversation changes a conversation.
func (s *Store) UpdateConversation(ctx context.Context, org db.Org, id string,
	u ConversationUpdate) (Conversation, error) {
	if err := checkConversation(u.WindowLimit, u.Summary, u.Description); err != nil {
		return Conversation{}, err
	}
	err := db.Exec(ctx, s.db, `
		UPDATE conversations
		SET summary = coalesce(@summary, summary), description = coalesce(@description, description),
		    model = coalesce(@model, model), model_settings = (`+mergedSettings+`),
		    context_window_limit = coalesce(@window, context_window_limit),
		    compaction_settings = nullif(coalesce(@compaction::jsonb, compaction_settings), 'null'),
		    archived_at = least(CASE WHEN NOT @archived THEN NULL ELSE archived_at END,
		        now() + CASE WHEN @archived THEN interval '0' END),
		    last_message_at = coalesce(@last, last_message_at), updated_at = now()
		WHERE org = @org AND id = @id AND deleted_at IS NULL`,
		pgx.StrictNamedArgs{"org": org, "id": id, "summary": u.Summary, "description": u.Description, "model": u.Model,
			"settings": u.ModelSettings, "window": u.WindowLimit, "compaction": u.Compaction, "archived": u.Archived,
			"last": u.LastMessageAt})
	if err != nil {
		return Conversation{}, s.conversationError(ctx, org, err, "", id)
	}
	return s.Conversation(ctx, org, "", id)
}

// Hold delays those compactions of a conversation that can wait, until a time; nil ends the delay.
func (s *Store) Hold(ctx context.Context, org db.Org, id string, until *time.Time) error {
	err := db.Exec(ctx, s.db, `
		UPDATE conversations SET held_until = $3 WHERE org = $1 AND id = $2 AND deleted_at IS NULL`, org, id, until)
	return s.conversationError(ctx, org, err, "", id)
}

// RunEnded notes at the start of the transaction that a run in a conversation ended. failed is not nil if the run
// failed; RunEnded sets its position to the conversation's end.
func (s *Store) RunEnded(ctx context.Context, org db.Org, conversation string, failed *FailedTurn) error {
	var status *int
	if failed != nil {
		status = &failed.Status
	}
	return db.Exec(ctx, s.db, `
		UPDATE conversations
		SET last_run_completion = now(), refusal = CASE WHEN $3::integer IS NULL THEN refusal ELSE `+withFailed+` END
		WHERE org = $1 AND id = $2`, org, conversation, status)
}

// TurnFailed notes that the newest prompt of a conversation failed for a reason other than its messages. status is the
// HTTP status of the provider; 0 if unknown. otid is the caller's own id of this report; it may be empty.
func (s *Store) TurnFailed(ctx context.Context, org db.Org, c Conversation, status int, otid string) error {
	report := map[string]string{}
	if otid != "" {
		report["otid"] = otid
	}
	return db.Exec(ctx, s.db, `UPDATE conversations SET refusal = `+withFailed+` || $4::jsonb WHERE org = $1 AND key = $2`,
		org, c.Key, status, report)
}

// withFailed is the conversation's refusal with a FailedTurn that has status $3 and ends at the last message. A cluster
// refuses jsonb_build_object here, because it is not immutable.
const withFailed = `coalesce(refusal, '{"at":0}')
	|| ('{"failed":{"at":' || messages::text || ',"status":' || $3::integer::text || '}}')::jsonb`

// DeleteConversation hides a conversation and its messages from every read; the log keeps them. ErrConflict for an
// agent's default conversation.
func (s *Store) DeleteConversation(ctx context.Context, org db.Org, id string) error {
	c, err := s.Conversation(ctx, org, "", id)
	if err != nil {
		return err
	}
	if c.IsDefault {
		return db.Conflict("%s is the default conversation of agent %s and cannot be deleted; reset it instead", id,
			c.AgentID)
	}
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		key, err := db.One[int64](ctx, tx, `
			UPDATE conversations SET deleted_at = now(), updated_at = now()
			WHERE org = $1 AND id = $2 AND deleted_at IS NULL RETURNING key`, org, id)
		if err != nil {
			return err
		}
		return s.With(tx).cancelHidden(ctx, org, []int64{key})
	})
	return s.conversationError(ctx, org, err, "", id)
}

// Reset hides an agent's default conversation and begins a new one with the instructions that compile returns. compile
// runs in the transaction, after the conversation is hidden. The log keeps the hidden messages: lists include them if
// MessageFilter.WithReset is set, and no search finds them.
func (s *Store) Reset(ctx context.Context, org db.Org, agentID string, compile func(pgx.Tx) (string, error)) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		key, err := db.One[int64](ctx, tx, `
			UPDATE conversations c SET deleted_at = now(), reset_at = now(), is_default = false, updated_at = now()
			FROM agents a
			WHERE a.key = c.agent_key AND c.org = $1 AND a.org = $1 AND a.id = $2 AND c.is_default
			RETURNING c.key`, org, agentID)
		if err != nil {
			return s.conversationError(ctx, org, err, agentID, "")
		}
		if err := s.With(tx).cancelHidden(ctx, org, []int64{key}); err != nil {
			return err
		}
		instructions, err := compile(tx)
		if err != nil {
			return err
		}
		return s.With(tx).Begin(ctx, org, agentID, instructions)
	})
}

// Forget hides an agent's conversations and marks its log for Clear, in the transaction that deletes the agent. It
// locks the conversations, so that nothing is appended until that transaction ends.
func (s *Store) Forget(ctx context.Context, org db.Org, agentID string) error {
	hidden, err := db.All[int64](ctx, s.db, `
		WITH locked AS (
			SELECT c.key FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND a.id = $2
			ORDER BY c.key
			FOR NO KEY UPDATE OF c
		)
		UPDATE conversations SET deleted_at = least(deleted_at, now())
		WHERE org = $1 AND key IN (SELECT key FROM locked)
		RETURNING key`, org, agentID)
	if err == nil {
		err = s.cancelHidden(ctx, org, hidden)
	}
	if err == nil {
		_, err = s.db.Exec(ctx, `
			UPDATE agent_logs SET agent_key = NULL
			WHERE org = $1 AND agent_key = (SELECT key FROM agents WHERE org = $1 AND id = $2)`, org, agentID)
	}
	return db.Error(err)
}
