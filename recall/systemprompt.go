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

// ListedPrompt says how a list shows a system prompt of a conversation that has had several.
type ListedPrompt struct {
	Key     int64  `db:"key"`     // of the message
	First   bool   `db:"first"`   // only the first is shown
	Current []Part `db:"content"` // with the content of the newest
}

// ListedPrompts returns, by key, those of the messages that are system prompts of conversations with several.
func (s *Store) ListedPrompts(ctx context.Context, org db.Org, messages []Message) (map[int64]ListedPrompt, error) {
	var keys []int64
	for _, m := range messages {
		if m.Role == System {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := db.All[ListedPrompt](ctx, s.db, `
		SELECT m.key, m.position = c.prompts[1] AS first, newest.content
		FROM messages m
		JOIN conversations c ON c.org = m.org AND c.key = m.conversation_key
		JOIN messages newest ON newest.org = c.org AND newest.conversation_key = c.key
		                    AND newest.position = c.prompts[cardinality(c.prompts)]
		WHERE m.org = $1 AND m.key = ANY ($2) AND m.position = ANY (c.prompts) AND cardinality(c.prompts) > 1`, org, keys)
	listed := make(map[int64]ListedPrompt, len(rows))
	for _, r := range rows {
		listed[r.Key] = r
	}
	return listed, err
}

// SetSystemPrompt appends a system prompt to a conversation unless it is already the current one. The model sees it as
// its first message.
func (s *Store) SetSystemPrompt(ctx context.Context, org db.Org, agentID, conversation, instructions string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		store := s.With(tx)
		condition, args := named(ctx, org, agentID, conversation)
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
