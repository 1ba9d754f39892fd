package letta

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Identity is an identity in Letta's shape.
type Identity struct {
	agent.Identity
	ProjectID rest.Null `json:"project_id"`
}

// IdentityOf returns an identity in Letta's shape.
func IdentityOf(i agent.Identity) Identity { return Identity{Identity: i} }

// Property is a fact about an identity.
type Property struct {
	Key   string       `json:"key"`
	Value any          `json:"value"`
	Type  propertyType `json:"type"`
}

type propertyType string

func (propertyType) Schema(rest.Registry) *rest.Schema {
	return rest.Enum("string", "number", "boolean", "json")
}

type identityType string

func (identityType) Schema(rest.Registry) *rest.Schema { return rest.Enum("org", "user", "other") }

// NewIdentity is a request to create an identity.
type NewIdentity struct {
	IdentifierKey string               `json:"identifier_key" doc:"The caller's own name for it; no other has it."`
	Name          string               `json:"name"`
	Type          identityType         `json:"identity_type"`
	AgentIDs      rest.Opt[[]string]   `json:"agent_ids,omitzero"`
	BlockIDs      rest.Opt[[]string]   `json:"block_ids,omitzero"`
	Properties    rest.Opt[[]Property] `json:"properties,omitzero"`
}

// Fields returns the change that gives an identity these values.
func (n NewIdentity) Fields() IdentityFields {
	set := func(text string) rest.Opt[string] { return rest.Opt[string]{Set: true, Value: text} }
	return IdentityFields{IdentifierKey: set(n.IdentifierKey), Name: set(n.Name),
		Type: rest.Opt[identityType]{Set: true, Value: n.Type}, AgentIDs: n.AgentIDs, BlockIDs: n.BlockIDs,
		Properties: n.Properties}
}

// IdentityFields change an identity. Null leaves a field unchanged.
type IdentityFields struct {
	IdentifierKey rest.Opt[string]       `json:"identifier_key,omitzero"`
	Name          rest.Opt[string]       `json:"name,omitzero"`
	Type          rest.Opt[identityType] `json:"identity_type,omitzero"`
	AgentIDs      rest.Opt[[]string]     `json:"agent_ids,omitzero" doc:"Are added to those that it has."`
	BlockIDs      rest.Opt[[]string]     `json:"block_ids,omitzero" doc:"Are added to those that it has."`
	Properties    rest.Opt[[]Property]   `json:"properties,omitzero" doc:"Replace those of their keys."`
}

// Change applies the fields to an identity. If replace is set, lists replace the identity's lists; otherwise they add
// to them.
func (f IdentityFields) Change(i *agent.Identity, replace bool) {
	for _, text := range []struct {
		to   *string
		from *string
	}{{&i.IdentifierKey, f.IdentifierKey.Pointer()}, {&i.Name, f.Name.Pointer()}, {&i.Type, (*string)(f.Type.Pointer())}} {
		if text.from != nil {
			*text.to = *text.from
		}
	}
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&i.AgentIDs, f.AgentIDs.Value}, {&i.BlockIDs, f.BlockIDs.Value}} {
		switch {
		case list.from != nil && replace:
			*list.to = list.from
		case list.from != nil:
			*list.to = slices.Concat(*list.to, list.from)
		}
	}
	var properties []Property
	if !replace || f.Properties.Value == nil {
		_ = json.Unmarshal(i.Properties, &properties) // they were checked when they were stored
	}
	for _, p := range f.Properties.Value {
		properties = slices.DeleteFunc(properties, func(stored Property) bool { return stored.Key == p.Key })
		properties = append(properties, p)
	}
	i.Properties = chat.Encode(append([]Property{}, properties...))
}

// IdentityFilter narrows a list of identities.
type IdentityFilter struct {
	Name          string `query:"name" doc:"Part of the name, in any case."`
	IdentifierKey string `query:"identifier_key" doc:"The exact key."`
	Type          string `query:"identity_type" enum:"org,user,other"`
}

// Filter returns the store's filter.
func (f IdentityFilter) Filter() agent.IdentityFilter {
	return agent.IdentityFilter{Contains: f.Name, IdentifierKey: f.IdentifierKey, Type: f.Type}
}
