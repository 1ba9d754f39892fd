package recall

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

func instruct(instructions string) Draft {
	return Draft{Role: System, Content: []Part{{Type: Text, Text: instructions}}}
}

// SetSystemPrompt appends a system prompt to a conversation unless it is already the current one. The model sees it as
// its first message.
func (s *Store) SetSystemPrompt(ctx context.Context, org db.Org, agentID, conversation, instructions string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		store := s.With(tx)
		condition, args := named(org, agentID, conversation)
		c, err := db.One[Conversation](ctx, tx, conversationRows+` AND `+condition+` FOR NO KEY UPDATE OF c`, args)
		if err != nil {
			return s.conversationError(ctx, org, err, agentID, conversation)
		}
		current, err := store.prompt(ctx, org, c)
		if err != nil {
			return err
		}
		redactor, err := store.redactor(ctx, org)
		if err != nil {
			return err
		}
		ready, err := newEntry(instruct(instructions), redactor, surroundings{now: time.Now()})
		if err != nil || len(current.Content) == 1 && current.Content[0].Text == ready.Content[0].Text {
			return err
		}
		appended, err := store.Append(ctx, org, c.AgentID, c.ID, []Draft{instruct(instructions)})
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			UPDATE conversations SET prompts = prompts || $3::integer, updated_at = now() WHERE org = $1 AND key = $2`,
			org, c.Key, appended[0].Position)
	})
}
