package recall

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Begin creates a new agent's default conversation, in the transaction that creates the agent. instructions become its
// first message.
func (s *Store) Begin(ctx context.Context, org db.Org, agentID, instructions string) error {
	var batch pgx.Batch
	batch.Queue(`
		INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents WHERE org = $1 AND id = $2
		ON CONFLICT DO NOTHING`, org, agentID)
	batch.Queue(`
		INSERT INTO conversations (org, agent_key, is_default)
		SELECT org, key, true FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	if err := s.db.SendBatch(ctx, &batch).Close(); err != nil {
		return db.Error(err)
	}
	_, err := s.Append(ctx, org, agentID, DefaultConversation, []Draft{instruct(instructions)})
	return err
}

// NewConversation describes a conversation to be created.
type NewConversation struct {
	ID            string // conv- and a UUID; empty to choose one
	Summary       *string
	Description   *string
	Model         *string
	ModelSettings json.RawMessage
	WindowLimit   *int            // in tokens
	Compaction    json.RawMessage // an object of settings that override the agent's; the caller has checked it
	Hidden        bool
	Instructions  string // the first message
}

// NewConversationID returns an id for a conversation to be created.
func NewConversationID() string { return "conv-" + uuid.NewString() }

// CreateConversation adds a conversation to an agent. It returns ErrNotFound if the agent does not exist.
func (s *Store) CreateConversation(ctx context.Context, org db.Org, agentID string,
	n NewConversation) (Conversation, error) {
	if err := checkConversation(n.WindowLimit, n.Summary, n.Description); err != nil {
		return Conversation{}, err
	}
	var created Conversation
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		store := s.With(tx)
		agent, err := db.AgentKey(ctx, tx, org, agentID)
		if err != nil {
			return err
		}
		id, err := db.One[string](ctx, tx, `
			INSERT INTO conversations (id, org, agent_key, summary, description, model, model_settings,
			                           context_window_limit, compaction_settings, hidden)
			SELECT @id, @org, @agent, @summary, @description, @model, (`+mergedSettings+`), @window, @compaction,
			       @hidden
			FROM (SELECT NULL::jsonb AS model_settings) AS none
			RETURNING id`,
			pgx.StrictNamedArgs{"id": cmp.Or(n.ID, NewConversationID()), "org": org, "agent": agent,
				"summary": n.Summary, "description": n.Description, "model": n.Model, "settings": n.ModelSettings,
				"window": n.WindowLimit, "compaction": n.Compaction, "hidden": n.Hidden})
		if err != nil {
			return err
		}
		if _, err := store.Append(ctx, org, agentID, id, []Draft{instruct(n.Instructions)}); err != nil {
			return err
		}
		created, err = store.Conversation(ctx, org, agentID, id)
		return err
	})
	return created, err
}

// MergedSettings returns SQL for model settings after a change: the change's fields replace stored ones, and null
// removes one. It is NULL if no field is left. It uses immutable functions alone, the only ones of columns that a
// cluster accepts in an UPDATE.
func MergedSettings(stored, change string) string {
	merged := `(coalesce(` + stored + `, '{}') || coalesce(` + change + `, '{}'))`
	return `nullif(` + merged + ` - ARRAY(SELECT key FROM jsonb_each` + merged + ` WHERE value = 'null'), '{}')`
}

var mergedSettings = MergedSettings("model_settings", "@settings::jsonb")

// maxNoteBytes bounds a conversation's summary and description.
const maxNoteBytes = 100_000

func checkConversation(window *int, notes ...*string) error {
	if window != nil && (*window < 1 || *window > 100_000_000) {
		return db.Invalid("context_window_limit must be between 1 and 100000000. Got: %d", *window)
	}
	for _, note := range notes {
		if note != nil && len(*note) > maxNoteBytes {
			return db.Invalid("a summary or description has %d bytes; it may have at most %d", len(*note), maxNoteBytes)
		}
	}
	return nil
}
