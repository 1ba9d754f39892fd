package server

import (
	"context"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/apikey"
)

func (s *Server) keyRoutes(a *rest.API) {
	const path = "/v1/admin/keys"
	admin := a.For(rest.Admin)
	rest.Get(admin, path, "list_keys: List API keys. Those of the organization; for the operator those of all.",
		s.listKeys, rest.Own)
	rest.Post(admin, path, "create_key: Create an API key. It is shown only in this answer. It cannot do more than the "+
		"key that makes it, and not for longer.", s.createKey, rest.Own)
	rest.Get(admin, path+"/{key_id}", "get_key: Get an API key. Without the key itself, of which only a hash is stored.",
		s.getKey, rest.Own)
	rest.Delete(admin, path+"/{key_id}", "delete_key: Revoke an API key. No server accepts it from then on, and its "+
		"streams end.", s.revokeKey, rest.Own)
	s.sessionRoutes(a)
}

// APIKey is an API key without its secret.
type APIKey struct {
	ID                string     `json:"id"`
	OrgID             string     `json:"org_id" doc:"The id of the key's organization."`
	OrgName           string     `json:"org_name" doc:"The name of the key's organization."`
	Name              string     `json:"name"`
	Prefix            string     `json:"prefix" doc:"What the key begins with."`
	Scopes            []string   `json:"scopes" doc:"What the key may do: read, tools, write or admin."`
	AgentIDs          []string   `json:"agent_ids" doc:"The agents that the scope tools is for."`
	UserID            *string    `json:"user_id" doc:"The identity to which the key is bound; null: to none."`
	Operator          bool       `json:"operator" doc:"Whether the key manages organizations."`
	CreatedAt         time.Time  `json:"created_at"`
	ExpiresAt         *time.Time `json:"expires_at" doc:"From when on the key is refused; null for never."`
	LastUsedAt        *time.Time `json:"last_used_at" doc:"When the key was used last, to about a minute; null for never."`
	RequestsPerMinute *int       `json:"requests_per_minute" doc:"Null for the server's setting."`
	RequestsAtOnce    *int       `json:"requests_at_once" doc:"Null for the server's setting."`
	GatewayMode       *string    `json:"gateway_mode" doc:"Of its requests to the gateway; null: the agent's."`
}

// MadeAPIKey is a new API key with its secret.
type MadeAPIKey struct {
	APIKey
	Key string `json:"key" doc:"The key. It is not shown again."`
}

func apiKeyOf(k apikey.Key) APIKey {
	var mode *string
	if k.GatewayMode != "" {
		mode = &k.GatewayMode
	}
	return APIKey{ID: k.ID, OrgID: k.OrgID, OrgName: k.OrgName, Name: k.Name, Prefix: k.Prefix, Scopes: k.Scopes,
		AgentIDs: k.AgentIDs, UserID: k.UserID, Operator: k.Operator, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
		LastUsedAt:        k.LastUsedAt,
		RequestsPerMinute: k.RequestsPerMinute, RequestsAtOnce: k.RequestsAtOnce, GatewayMode: mode}
}

// NewAPIKey describes an API key to create.
type NewAPIKey struct {
	Name      string              `json:"name" minLength:"1" maxLength:"200" doc:"What the key is for."`
	Scopes    []string            `json:"scopes" enum:"read,tools,write,admin" doc:"What the key may do."`
	AgentIDs  []rest.AgentID      `json:"agent_ids,omitzero" doc:"The agents that the scope tools is for."`
	UserID    rest.Opt[string]    `json:"user_id,omitzero" doc:"Binds the key to a user: an identity, made if new."`
	ExpiresAt *time.Time          `json:"expires_at,omitzero" doc:"From when on the key is refused."`
	OrgID     rest.OrganizationID `json:"org_id,omitempty" doc:"For the operator: of which organization."`
	Operator  bool                `json:"operator,omitzero" doc:"Whether the key manages organizations."`

	// Both fall back to the server's settings.
	RequestsPerMinute *int `json:"requests_per_minute,omitzero" minimum:"1" maximum:"1000000" doc:"Or the server's."`
	RequestsAtOnce    *int `json:"requests_at_once,omitzero" minimum:"1" maximum:"1000000" doc:"Or the server's."`

	GatewayMode string `json:"gateway_mode,omitempty" enum:"observe,remember,manage" doc:"Of its requests to the gateway."`
}

func (s *Server) listKeys(ctx context.Context, input *struct {
	rest.Paging
	OrgID rest.OrganizationID `query:"org_id" doc:"For the operator: of this organization only."`
}) ([]APIKey, error) {
	org := keysOf(ctx)
	if input.OrgID != "" {
		namedOrg, err := s.organizationOf(ctx, string(input.OrgID))
		if err != nil {
			return nil, err
		}
		org = namedOrg
	}
	list, err := s.Keys.Keys(ctx, org, input.Page(50, rest.OldestFirst))
	return rest.Each(list, apiKeyOf), err
}

func (s *Server) createKey(ctx context.Context, input *struct{ Body NewAPIKey }) (MadeAPIKey, error) {
	b, maker := input.Body, rest.Caller(ctx)
	org, err := s.orgNamed(ctx, b.OrgID)
	if err != nil {
		return MadeAPIKey{}, err
	}
	user, err := s.keyUser(ctx, org, maker, b.UserID)
	if err != nil {
		return MadeAPIKey{}, err
	}
	agents := rest.Each(b.AgentIDs, func(id rest.AgentID) string { return string(id) })
	secret, key, err := s.Keys.Create(ctx, apikey.NewKey{In: org, Name: b.Name, Scopes: b.Scopes, AgentIDs: agents,
		User: user, Operator: b.Operator, ExpiresAt: b.ExpiresAt, RequestsPerMinute: b.RequestsPerMinute,
		RequestsAtOnce: b.RequestsAtOnce, GatewayMode: b.GatewayMode, Maker: &maker, Defaults: s.KeyLimits})
	return MadeAPIKey{APIKey: apiKeyOf(key), Key: secret}, err
}

// keyUser returns the user to which a new key of an organization is to be bound; nil if it names none.
func (s *Server) keyUser(ctx context.Context, org db.Org, maker apikey.Key, named rest.Opt[string]) (*apikey.User,
	error) {
	if !named.Set || named.Null {
		return nil, nil //nolint:nilnil // as documented
	}
	if strings.TrimSpace(named.Value) == "" {
		return nil, rest.Unprocessable("body.user_id", "it is blank; give the id or the identifier_key of an identity")
	}
	maker.Org, maker.UserKey = org, 0
	user, err := s.userOf(ctx, maker, strings.TrimSpace(named.Value))
	return &user, err
}

// OfKey holds the path parameter of operations on an API key.
type OfKey struct {
	KeyID rest.KeyID `path:"key_id"`
}

func (s *Server) getKey(ctx context.Context, input *OfKey) (APIKey, error) {
	key, err := s.Keys.Key(ctx, keysOf(ctx), string(input.KeyID))
	return apiKeyOf(key), err
}

func (s *Server) revokeKey(ctx context.Context, input *OfKey) (APIKey, error) {
	key, err := s.Keys.Delete(ctx, keysOf(ctx), string(input.KeyID), rest.Caller(ctx))
	return apiKeyOf(key), err
}

// agentOf returns the agent of a conversation or a run. param is conversation_id or run_id, and id its value.
func (s *Server) agentOf(ctx context.Context, org db.Org, param, id string) (string, error) {
	if param == "run_id" {
		r, err := s.Loop.RunByID(ctx, org, id)
		return r.AgentID, err
	}
	if id == "default" {
		return "", db.ErrNotFound
	}
	c, err := s.Recall.Conversation(ctx, org, "", id)
	return c.AgentID, err
}
