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

// SetSystemPrompt appends a system prompt to a conversation, unless it is the current one. It becomes the first message
// that the model sees.
func (s *Store) SetSystemPrompt(ctx context.Context, org db.Org, agentID, conversation, instructions string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		condition, args := named(org, agentID, conversation)
		c, err := db.One[Conversation](ctx, tx, conversationRows+` AND `+condition+` FOR NO KEY UPDATE OF c`, args)
		if err != nil {
			return s.conversationError(ctx, org, err, agentID, conversation)
		}
		current, err := in.prompt(ctx, org, c)
		if err != nil {
			return err
		}
		redactor, err := in.redactor(ctx, org)
		if err != nil {
			return err
		}
		ready, err := newEntry(instruct(instructions), redactor, time.Now(), nil)
		if err != nil || len(current.Content) == 1 && current.Content[0].Text == ready.Content[0].Text {
			return err
		}
		appended, err := in.Append(ctx, org, c.AgentID, c.ID, []Draft{instruct(instructions)})
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			UPDATE conversations SET prompts = prompts || $3::integer, updated_at = now() WHERE org = $1 AND key = $2`,
			org, c.Key, appended[0].Position)
	})
}
