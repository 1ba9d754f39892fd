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
