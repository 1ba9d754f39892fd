package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// PolicyChange is a change of a policy.
type PolicyChange struct {
	Key            int64           `db:"key" json:"-"`
	ID             string          `db:"id" json:"id"`
	Place          string          `db:"place" json:"place" enum:"server,organization,agent,conversation"`
	AgentID        *string         `db:"agent_id" json:"agent_id"`
	ConversationID *string         `db:"conversation_id" json:"conversation_id"`
	Author         string          `db:"author" json:"author" doc:"The id of the key that changed it; empty without keys."`
	Policy         json.RawMessage `db:"policy" json:"policy" doc:"What was set; null took it back."`
	Seq            *int64          `db:"seq" json:"seq" doc:"Of the event in the agent's log."`
	At             time.Time       `db:"at" json:"at"`
}

// PolicyChanges lists the changes of an organization's policies.
func (s *Store) PolicyChanges(ctx context.Context, org db.Org, p db.Page) ([]PolicyChange, error) {
	p.Order = "key"
	return db.List[PolicyChange](ctx, s.DB, p, `
		SELECT x.key, 'policy-change-' || x.key AS id, x.place, a.id AS agent_id, c.id AS conversation_id, x.author, x.policy,
		       x.seq, x.at
		FROM policy_changes x
		LEFT JOIN agents a ON a.org = @org AND a.key = x.agent_key
		LEFT JOIN conversations c ON c.org = @org AND c.key = x.conversation_key
		WHERE x.org = @org`, pgx.StrictNamedArgs{"org": org})
}

// SetOrganizationPolicy sets the policy for an organization's agents; null removes it. ErrInvalid if raw is no policy,
// or does not work together with the server's.
func (s *Store) SetOrganizationPolicy(ctx context.Context, org db.Org, raw json.RawMessage, author string) error {
	raw, err := toStore(raw)
	if err != nil {
		return err
	}
	server, err := s.ServerPolicy(ctx)
	if err == nil && raw != nil {
		err = policy.CheckOver(raw, policy.OfOrganization, s.ofServer(server))
	}
	if err != nil {
		return err
	}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := db.Exec(ctx, tx, `UPDATE organizations SET policy = $2 WHERE org = $1`, org, raw); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			INSERT INTO policy_changes (org, place, author, policy) VALUES ($1, 'organization', $2, $3)`, org, author, raw)
	})
}

// ServerPolicy returns the policy that the operator set for the agents of all organizations; nil if none is set, so
// that the one in the server's settings applies.
func (s *Store) ServerPolicy(ctx context.Context) (json.RawMessage, error) {
	raw, err := db.One[json.RawMessage](ctx, s.DB, `SELECT policy FROM server_policies ORDER BY key DESC LIMIT 1`)
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	return raw, err
}

// SetServerPolicy sets the policy for the agents of all organizations; null removes it. ErrInvalid if raw is no policy.
func (s *Store) SetServerPolicy(ctx context.Context, raw json.RawMessage, author string) error {
	raw, err := toStore(raw)
	if err != nil {
		return err
	}
	return db.Exec(ctx, s.DB, `INSERT INTO server_policies (policy, author) VALUES ($1, $2)`, raw, author)
}

// ServerPolicyChanges lists the operator's changes of the policy for all organizations.
func (s *Store) ServerPolicyChanges(ctx context.Context, p db.Page) ([]PolicyChange, error) {
	p.Order = "key"
	return db.List[PolicyChange](ctx, s.DB, p, `
		SELECT key, 'policy-change-' || key AS id, 'server' AS place, NULL AS agent_id, NULL AS conversation_id, author,
		       policy, NULL::bigint AS seq, at
		FROM server_policies WHERE true`, pgx.StrictNamedArgs{})
}

// toStore returns a policy in the form to store: nil for null. ErrInvalid if raw is no policy.
func toStore(raw json.RawMessage) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); string(raw) == "null" {
		raw = nil
	}
	return raw, policy.Check(raw)
}

// policyChanged is a change of a policy, and where it happened.
type policyChanged struct {
	AgentID, ConversationID string          // ConversationID is empty for the agent's own policy
	Was, Now                json.RawMessage // objects of compaction settings
}

// recordPolicy records that a policy changed, in the transaction of the change: who changed it, by the request's key,
// and an event in the agent's log. It does nothing if the policy is the same.
func (s *Store) recordPolicy(ctx context.Context, org db.Org, ch policyChanged) error {
	before, after := policyIn(ch.Was), policyIn(ch.Now)
	if bytes.Equal(before, after) {
		return nil
	}
	place, ref := policy.OfAgent, ch.AgentID
	if ch.ConversationID != "" {
		place, ref = policy.OfConversation, ch.ConversationID
	}
	if err := s.checkOver(ctx, org, ch.AgentID, place, after); err != nil {
		return err
	}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		events, err := event.Append(ctx, tx, org, event.Event{AgentID: ch.AgentID, Type: event.PolicyChanged, RefID: ref})
		if err != nil {
			return err
		}
		agent, err := db.AgentKey(ctx, tx, org, ch.AgentID)
		if err != nil {
			return err
		}
		conversations, err := db.All[int64](ctx, tx, `
			SELECT key FROM conversations WHERE org = $1 AND id = $2`, org, ch.ConversationID)
		if err != nil {
			return err
		}
		var conversation *int64
		if len(conversations) > 0 {
			conversation = &conversations[0]
		}
		return db.Exec(ctx, tx, `
			INSERT INTO policy_changes (org, place, agent_key, conversation_key, author, policy, seq)
			VALUES (@org, @place, @agent, @conversation, @author, @policy, @seq)`,
			pgx.StrictNamedArgs{"org": org, "place": place, "conversation": conversation, "agent": agent,
				"author": db.Provenance{}.Or(ctx).KeyID, "policy": after, "seq": events[0].Seq})
	})
}
