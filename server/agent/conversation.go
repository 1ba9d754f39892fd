package agent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// CreateConversation creates a conversation of an agent. Its log begins with the current system prompt, until Recompile
// appends another.
func (s *Store) CreateConversation(ctx context.Context, org db.Org, agentID string,
	n recall.NewConversation) (recall.Conversation, error) {
	var c recall.Conversation
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.with(tx)
		a, err := in.Agent(ctx, org, agentID)
		if err != nil {
			return err
		}
		n.ID = recall.NewConversationID()
		empty := recall.Conversation{ID: n.ID, ContextView: recall.ContextView{FirstVisible: 1}}
		if n.Instructions, err = in.compileNow(ctx, org, a, empty); err != nil {
			return err
		}
		c, err = in.Recall.CreateConversation(ctx, org, a.ID, n)
		return err
	})
	return c, err
}

// Fork copies a conversation to a new one: up to a message, or whole if messageID is empty. The copy's model sees what
// that of the other saw then, with a system prompt of its own. ErrNotFound if the conversation lacks the message.
func (s *Store) Fork(ctx context.Context, org db.Org, c recall.Conversation, messageID string, hidden bool) (
	forked recall.Conversation, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.with(tx)
		a, err := in.Agent(ctx, org, c.AgentID)
		if err != nil {
			return err
		}
		if c, err = in.Recall.Conversation(ctx, org, a.ID, c.ID); err != nil {
			return err
		}
		f := recall.Fork{To: c.Messages, View: c.ContextView, Hidden: hidden}
		if messageID != "" {
			m, err := in.Recall.Message(ctx, org, messageID)
			if err != nil {
				return err
			}
			if m.AgentID != a.ID || (m.ConversationID == nil) != c.IsDefault || !c.IsDefault && *m.ConversationID != c.ID {
				return db.NotFound("Message with ID %s is not in conversation %s", messageID, c.ID)
			}
			if f.To = m.Position; f.To < c.Messages {
				if f.View, err = in.Compaction.ViewAt(ctx, org, c, m.Seq); err != nil {
					return err
				}
			}
		}
		if forked, err = in.Recall.Fork(ctx, org, c, f); err != nil {
			return err
		}
		prompt, err := in.compileNow(ctx, org, a, forked)
		if err != nil {
			return err
		}
		if err := in.Recall.SetSystemPrompt(ctx, org, a.ID, forked.ID, prompt); err != nil {
			return err
		}
		forked, err = in.Recall.Conversation(ctx, org, a.ID, forked.ID)
		return err
	})
	return forked, err
}

// Recompile compiles the system prompt of a conversation and appends it to the log, unless dry is set or it is the
// current one. It returns the prompt.
func (s *Store) Recompile(ctx context.Context, org db.Org, c recall.Conversation, dry bool) (string, error) {
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil {
		return "", err
	}
	p, err := s.compileNow(ctx, org, a, c)
	if err != nil || dry {
		return p, err
	}
	return p, s.Recall.SetSystemPrompt(ctx, org, c.AgentID, c.ID, p)
}

// Reset hides the messages of an agent's default conversation, which begins again with the current system prompt.
func (s *Store) Reset(ctx context.Context, org db.Org, agentID string) (Agent, error) {
	a, err := s.Agent(ctx, org, agentID)
	if err != nil {
		return a, err
	}
	return a, s.Recall.Reset(ctx, org, a.ID, func(tx pgx.Tx) (string, error) {
		return s.with(tx).SystemPrompt(ctx, org, a)
	})
}
