package agent

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// NewConversation describes a conversation to create.
type NewConversation struct {
	recall.NewConversation
	IdentityID string // the identity that takes part; may be empty
	User       string // the same by its id or its identifier key; an identity is made for a new key
}

// CreateConversation creates a conversation of an agent. Its log begins with the current system prompt; later prompts
// come from Recompile.
func (s *Store) CreateConversation(ctx context.Context, org db.Org, agentID string,
	n NewConversation) (recall.Conversation, error) {
	var c recall.Conversation
	ctx = db.WithUser(ctx, 0) // until its user is set, it is nobody's
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		a, err := inTx.Agent(ctx, org, agentID)
		if err != nil {
			return err
		}
		n.ID = cmp.Or(n.ID, recall.NewConversationID())
		user := int64(0)
		if n.IdentityID != "" {
			if user, err = inTx.identityKey(ctx, org, n.IdentityID); err != nil {
				return err
			}
		}
		if n.User != "" {
			if user, err = inTx.UserKeyOrNew(ctx, org, n.User); err != nil {
				return err
			}
		}
		empty := recall.Conversation{ID: n.ID, UserKey: user, ContextView: recall.ContextView{FirstVisible: 1}}
		if n.Instructions, err = inTx.compileNow(ctx, org, a, empty); err != nil {
			return err
		}
		if c, err = inTx.Recall.CreateConversation(ctx, org, a.ID, n.NewConversation); err != nil {
			return err
		}
		err = inTx.recordPolicy(ctx, org, policyChanged{AgentID: a.ID, ConversationID: c.ID, Now: c.Compaction})
		if err != nil {
			return err
		}
		if user != 0 {
			if err := inTx.setUser(ctx, org, c, user); err != nil {
				return err
			}
			c.UserKey = user
		}
		if s.Begun == nil {
			return nil
		}
		return s.Begun(ctx, tx, org, c)
	})
	return c, err
}

// ConversationChange is a change of a conversation.
type ConversationChange struct {
	recall.ConversationUpdate                 // Settings replaces its Compaction
	Settings                  json.RawMessage // in the form of ConversationSettings; nil keeps them
	Identity                  *string         // the identity that takes part; empty: nobody; nil: unchanged
}

// UpdateConversation changes a conversation completely or not at all. ErrNotFound if it or its identity does not exist,
// ErrInvalid if a value is wrong.
func (s *Store) UpdateConversation(ctx context.Context, org db.Org, c recall.Conversation, ch ConversationChange) (
	updated recall.Conversation, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if _, err := tx.Exec(ctx, `
			SELECT FROM conversations WHERE org = $1 AND key = $2 FOR NO KEY UPDATE`, org, c.Key); err != nil {
			return err
		}
		previous, err := inTx.Recall.Conversation(ctx, org, c.AgentID, c.ID)
		if err != nil {
			return err
		}
		u := ch.ConversationUpdate
		if u.Compaction, err = inTx.ConversationSettings(ctx, org, c.AgentID, previous.Compaction, ch.Settings); err != nil {
			return err
		}
		if ch.Identity != nil {
			if err := inTx.setConversationIdentity(ctx, org, previous, *ch.Identity); err != nil {
				return err
			}
		}
		if updated, err = inTx.Recall.UpdateConversation(ctx, org, c.ID, u); err != nil {
			return err
		}
		return inTx.recordPolicy(ctx, org, policyChanged{AgentID: c.AgentID, ConversationID: c.ID,
			Was: previous.Compaction, Now: updated.Compaction})
	})
	return updated, err
}

// ForkTo describes a copy of a conversation.
type ForkTo struct {
	ID        string // of the copy; empty to choose one
	MessageID string // the last message to copy; empty copies all
	Hidden    bool

	Ran func(tool string) bool // reports whether the server runs a tool; nil: it runs none
}

// Fork copies a conversation into a new one, up to a message or whole. The copy's model gets the messages that the
// original's model had in view then, with a new system prompt. Results of the server's own tools for copied calls are
// copied even if they stand behind the message, so that no tool runs again. ErrNotFound if the conversation lacks the
// message.
func (s *Store) Fork(ctx context.Context, org db.Org, c recall.Conversation, to ForkTo) (forked recall.Conversation,
	err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		a, err := inTx.Agent(ctx, org, c.AgentID)
		if err != nil {
			return err
		}
		if c, err = inTx.Recall.Conversation(ctx, org, a.ID, c.ID); err != nil {
			return err
		}
		f, err := inTx.forkAt(ctx, org, c, to.MessageID)
		if err != nil {
			return err
		}
		if to.Ran != nil {
			if f.Results, err = inTx.Recall.ResultsBehind(ctx, org, c, f.To, to.Ran); err != nil {
				return err
			}
		}
		f.Hidden, f.ID = to.Hidden, cmp.Or(to.ID, f.ID)
		if f.Prompt, err = inTx.compileNow(ctx, org, a, f.Of(c)); err != nil {
			return err
		}
		forked, err = inTx.copied(ctx, org, c, f)
		return err
	})
	return forked, err
}

// Delegation describes the sub-agent that will work in a copy of a conversation.
type Delegation struct {
	OnlyTools []string // tools that it may call; nil: all
	Depth     int      // depth of the sub-agent, from 1
}

// Delegate copies a whole conversation for a sub-agent. The copy's prompt begins, byte for byte, with the next prompt
// of the original. Delegate returns the calls that the copy's model waits for.
func (s *Store) Delegate(ctx context.Context, org db.Org, c recall.Conversation, d Delegation) (
	forked recall.Conversation, pending []chat.PendingCall, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		p, err := inTx.assemble(ctx, org, PromptTarget{AgentID: c.AgentID, Conversation: c.ID})
		if err != nil {
			return err
		}
		f, err := inTx.forkAt(ctx, org, p.Conversation, "")
		if err != nil {
			return err
		}
		f.Hidden, f.Delegated, f.OnlyTools, f.Depth, f.Prompt = true, true, d.OnlyTools, d.Depth, p.system.beginning()
		pending = p.Pending
		forked, err = inTx.copied(ctx, org, p.Conversation, f)
		return err
	})
	return forked, pending, err
}

// copied makes a copy of a conversation with its compactions and its working memory.
func (s *Store) copied(ctx context.Context, org db.Org, c recall.Conversation, f recall.Fork) (
	forked recall.Conversation, err error) {
	forked, seqAt, err := s.Recall.Fork(db.WithUser(ctx, 0), org, c, f) // until its user is set, it is nobody's
	if err != nil {
		return forked, err
	}
	copied := forked
	copied.Messages = f.To // without the results
	if err := s.Compaction.Inherit(ctx, org, c, copied, seqAt(0)); err != nil {
		return forked, err
	}
	if err := s.keepIdentity(ctx, org, c, forked); err != nil {
		return forked, err
	}
	place := working.CopiedTo{Position: f.To, Changed: f.To, SeqAt: seqAt}
	if n := len(f.Results); n > 0 {
		place.Changed = f.Results[n-1].Position
	}
	return forked, s.Working.Fork(ctx, org, c, forked, place)
}

// forkAt returns the Fork of a conversation up to a message, or of all of it if messageID is empty.
func (s *Store) forkAt(ctx context.Context, org db.Org, c recall.Conversation, messageID string) (recall.Fork, error) {
	f := recall.Fork{ID: recall.NewConversationID(), To: c.Messages, View: c.ContextView, Stats: store.Restated}
	if messageID == "" {
		return f, nil
	}
	m, err := s.Recall.Message(ctx, org, messageID)
	if err != nil {
		return f, err
	}
	if m.AgentID != c.AgentID || (m.ConversationID == nil) != c.IsDefault || !c.IsDefault && *m.ConversationID != c.ID {
		return f, db.NotFound("Message with ID %s is not in conversation %s", messageID, c.ID)
	}
	f.To = m.Position
	f.View, err = s.Compaction.ViewAt(ctx, org, c, f.To)
	return f, err
}

// Recompile compiles a conversation's system prompt and returns it. It appends it to the log, unless dry is set or it
// is already the current one.
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

// Reset hides the messages of an agent's default conversation. A new one begins with the current system prompt and an
// empty working memory. Versions of the new working memory continue from the old one's.
func (s *Store) Reset(ctx context.Context, org db.Org, agentID string) (Agent, error) {
	a, err := s.Agent(ctx, org, agentID)
	if err != nil {
		return a, err
	}
	return a, db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		previous, err := inTx.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
		if err != nil {
			return err
		}
		err = inTx.Recall.Reset(ctx, org, a.ID, func(tx pgx.Tx) (string, error) {
			return s.With(tx).SystemPrompt(ctx, org, a)
		})
		if err != nil {
			return err
		}
		fresh, err := inTx.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
		if err != nil {
			return err
		}
		if err := inTx.keepIdentity(ctx, org, previous, fresh); err != nil {
			return err
		}
		if err := inTx.Working.Reset(ctx, org, previous, fresh); err != nil || s.Begun == nil {
			return err
		}
		return s.Begun(ctx, tx, org, fresh)
	})
}
