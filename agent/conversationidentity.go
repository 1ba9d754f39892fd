package agent

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// setConversationIdentity sets a conversation's identity; an empty id is nobody. ErrNotFound if the identity does not
// exist.
func (s *Store) setConversationIdentity(ctx context.Context, org db.Org, c recall.Conversation, id string) error {
	if id == "" {
		_, err := s.DB.Exec(ctx, `
			DELETE FROM conversation_identities WHERE org = $1 AND agent_key = $2 AND conversation_key = $3`,
			org, c.AgentKey, c.Key)
		return db.Error(err)
	}
	user, err := s.identityKey(ctx, org, id)
	if err != nil {
		return err
	}
	return s.setUser(ctx, org, c, user)
}

// setUser makes a conversation one with a user, by the key of the identity.
func (s *Store) setUser(ctx context.Context, org db.Org, c recall.Conversation, user int64) error {
	return db.Exec(ctx, s.DB, `
		INSERT INTO conversation_identities (org, agent_key, conversation_key, identity_key) VALUES ($1, $2, $3, $4)
		ON CONFLICT (org, agent_key, conversation_key) DO UPDATE SET identity_key = excluded.identity_key`,
		org, c.AgentKey, c.Key, user)
}

// identityKey returns the key of an identity. ErrNotFound if it does not exist.
func (s *Store) identityKey(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.DB, `SELECT key FROM identities WHERE org = $1 AND id = $2`, org, id)
	return key, db.OrNotFound(err, "Identity with ID %s not found", db.Short(id))
}

// ConversationIdentities maps conversation key → id of the conversation's identity.
func (s *Store) ConversationIdentities(ctx context.Context, org db.Org, conversations ...recall.Conversation) (
	map[int64]string, error) {
	type with struct {
		Conversation int64  `db:"conversation_key"`
		Identity     string `db:"id"`
	}
	var agents, keys []int64
	for _, c := range conversations {
		agents, keys = append(agents, c.AgentKey), append(keys, c.Key)
	}
	found, err := db.All[with](ctx, s.DB, `
		SELECT x.conversation_key, i.id
		FROM conversation_identities x JOIN identities i ON i.org = x.org AND i.key = x.identity_key
		WHERE x.org = $1 AND i.org = $1 AND x.agent_key = ANY ($2) AND x.conversation_key = ANY ($3)`, org, agents, keys)
	ids := map[int64]string{}
	for _, f := range found {
		ids[f.Conversation] = f.Identity
	}
	return ids, err
}

// keepIdentity copies a conversation's identity to another conversation of the same agent.
func (s *Store) keepIdentity(ctx context.Context, org db.Org, from, to recall.Conversation) error {
	_, err := s.DB.Exec(ctx, `
		INSERT INTO conversation_identities (org, agent_key, conversation_key, identity_key)
		SELECT org, agent_key, $4, identity_key FROM conversation_identities
		WHERE org = $1 AND agent_key = $2 AND conversation_key = $3`, org, from.AgentKey, from.Key, to.Key)
	return db.Error(err)
}
