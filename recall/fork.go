package recall

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Fork describes a copy of a conversation.
type Fork struct {
	To     int         // the last message that is copied, by its position
	View   ContextView // what a model sees of the copy
	Hidden bool
}

// Fork copies a conversation up to a position to a new conversation of its agent, with its settings and without its
// summary. The copies of messages have the same positions and texts, ids of their own, and neither otids nor runs.
// Later changes of either conversation do not change the other. ErrNotFound if the conversation was deleted.
func (s *Store) Fork(ctx context.Context, org db.Org, c Conversation, f Fork) (Conversation, error) {
	var forked Conversation
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		id, err := db.One[string](ctx, tx, `
			INSERT INTO conversations (id, org, agent_key, description, model, model_settings, context_window_limit, hidden)
			SELECT $3, org, agent_key, description, model, model_settings, context_window_limit, $4
			FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL
			RETURNING id`, org, c.Key, NewConversationID(), f.Hidden)
		if err != nil {
			return conversationError(err, c.AgentID, c.ID)
		}
		for from := 1; from <= f.To; from += MaxMessages {
			to := min(from+MaxMessages-1, f.To)
			if _, _, err := in.AppendTo(ctx, org, c.AgentID, id, in.copies(ctx, org, c, from, to)); err != nil {
				return err
			}
		}
		if err := in.setView(ctx, org, c, id, f); err != nil {
			return err
		}
		forked, err = in.Conversation(ctx, org, c.AgentID, id)
		if err == nil && forked.Messages != f.To { // the other was deleted meanwhile
			err = conversationError(db.ErrNotFound, c.AgentID, c.ID)
		}
		return err
	})
	return forked, err
}

// setView gives a copy of a conversation its view.
func (s *Store) setView(ctx context.Context, org db.Org, c Conversation, id string, f Fork) error {
	v := f.View
	if v.Kept == nil {
		v.Kept = []int{}
	}
	if v.Clipped == nil {
		v.Clipped = []byte(`[]`)
	}
	prompts := []int{}
	for _, p := range c.Prompts {
		if p <= f.To {
			prompts = append(prompts, p)
		}
	}
	return db.Exec(ctx, s.db, `
		UPDATE conversations
		SET prompts = @prompts, first_visible = @first, kept = @kept, summary_position = @summary, clipped = @clipped,
		    hidden_tokens = @hidden
		WHERE org = @org AND id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": id, "prompts": prompts, "first": v.FirstVisible, "kept": v.Kept,
			"summary": v.SummaryAt, "clipped": v.Clipped, "hidden": v.HiddenTokens})
}

// copiedAtOnce is how many messages are read at a time.
const copiedAtOnce = 100

// copies yields drafts of the messages from one position of a conversation to another.
func (s *Store) copies(ctx context.Context, org db.Org, c Conversation, from, to int) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for ; from <= to; from += copiedAtOnce {
			messages, err := db.All[Message](ctx, s.db, `
				SELECT `+messageColumns+` FROM `+messageTables+`
				WHERE m.org = $1 AND m.conversation_key = $2 AND m.position BETWEEN $3 AND $4
				ORDER BY m.position`, org, c.Key, from, min(from+copiedAtOnce-1, to))
			if err == nil {
				messages, err = s.whole(ctx, org, messages)
			}
			if err != nil {
				yield(Draft{}, err)
				return
			}
			for _, m := range messages {
				if !yield(m.copied(), nil) {
					return
				}
			}
		}
	}
}

// copied returns a draft that says the same as a message whose results are whole.
func (m Message) copied() Draft {
	d := Draft{Role: m.Role, Name: m.Name, SenderID: m.SenderID, GroupID: m.GroupID, Model: m.Model, IsErr: m.IsErr,
		CreatedAt: &m.CreatedAt}
	for _, p := range m.Content {
		p.Clip = nil // Append makes another
		d.Content = append(d.Content, p)
	}
	return d
}
