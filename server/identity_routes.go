package server

import (
	"context"
	"errors"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) identityRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/identities", "list_identities: List identities.", s.listIdentities)
	rest.Get(a.For(rest.Read), "/v1/identities/count",
		"count_identities: Count identities. The filters are those of the list.", s.countIdentities)
	rest.Get(a.For(rest.Read), "/v1/identities/{identity_id}", "get_identity: Get an identity.", s.getIdentity)
	rest.Get(a.For(rest.Read), "/v1/identities/{identity_id}/agents",
		"list_identity_agents: List the agents of an identity.", s.identityAgents)
	rest.Get(a.For(rest.Read), "/v1/identities/{identity_id}/blocks",
		"list_identity_blocks: List the blocks of an identity.", s.identityBlocks)
	rest.Post(a.For(rest.Write), "/v1/identities", "create_identity: Create an identity.", s.createIdentity)
	rest.Put(a.For(rest.Write), "/v1/identities",
		"upsert_identity: Create an identity, or replace the one of its identifier_key.", s.upsertIdentity)
	rest.Patch(a.For(rest.Write), "/v1/identities/{identity_id}",
		"update_identity: Change an identity. Agents, blocks and properties are added to those that it has.",
		s.updateIdentity)
	rest.Put(a.For(rest.Write), "/v1/identities/{identity_id}/properties",
		"update_identity_properties: Replace the properties of an identity.", s.replaceProperties)
	rest.Delete(a.For(rest.Write), "/v1/identities/{identity_id}",
		"delete_identity: Delete an identity. Its agents and blocks stay.", s.deleteIdentity)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/identities/attach/{identity_id}",
		"attach_identity: Give an agent an identity. Again changes nothing.", s.attachIdentity)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/identities/detach/{identity_id}",
		"detach_identity: Take an identity from an agent. Again changes nothing.", s.detachIdentity)
	rest.Patch(a.For(rest.Write), "/v1/blocks/{block_id}/identities/attach/{identity_id}",
		"attach_block_identity: Give a block an identity. Again changes nothing.", s.attachBlockIdentity)
	rest.Patch(a.For(rest.Write), "/v1/blocks/{block_id}/identities/detach/{identity_id}",
		"detach_block_identity: Take an identity from a block. Again changes nothing.", s.detachBlockIdentity)
}

// OfIdentity is the path of an identity.
type OfIdentity struct {
	IdentityID rest.IdentityID `path:"identity_id"`
}

func (s *Server) listIdentities(ctx context.Context, in *struct {
	letta.IdentityFilter
	rest.Paging
}) ([]letta.Identity, error) {
	list, err := s.Agents.Identities(ctx, rest.Org(ctx), in.Filter(), in.Page(50, rest.NewestFirst))
	return rest.Each(list, letta.IdentityOf), err
}

func (s *Server) countIdentities(ctx context.Context, in *letta.IdentityFilter) (int, error) {
	return s.Agents.CountIdentities(ctx, rest.Org(ctx), in.Filter())
}

func (s *Server) getIdentity(ctx context.Context, in *OfIdentity) (letta.Identity, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(in.IdentityID))
	return letta.IdentityOf(i), err
}

func (s *Server) identityAgents(ctx context.Context, in *struct {
	OfIdentity
	AgentPage
}) ([]letta.AgentState, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(in.IdentityID))
	return s.statesOf(ctx, in.AgentPage, i.AgentIDs, err)
}

func (s *Server) identityBlocks(ctx context.Context, in *struct {
	OfIdentity
	rest.Paging
}) ([]letta.Block, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(in.IdentityID))
	if err != nil {
		return nil, err
	}
	blocks := []letta.Block{}
	for _, id := range rest.Paged(i.BlockIDs, in.Page(50, rest.NewestFirst), func(id string) string { return id }) {
		b, err := s.Blocks.Block(ctx, rest.Org(ctx), id)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, letta.BlockOf(b))
	}
	return blocks, nil
}

// changeIdentity changes the identity of an id, or creates one if it is empty.
func (s *Server) changeIdentity(ctx context.Context, id string, change func(*agent.Identity)) (letta.Identity, error) {
	i, err := s.Agents.ChangeIdentity(ctx, rest.Org(ctx), id, func(i *agent.Identity) error {
		change(i)
		return nil
	})
	return letta.IdentityOf(i), err
}

func (s *Server) createIdentity(ctx context.Context, in *struct{ Body letta.NewIdentity }) (letta.Identity, error) {
	return s.changeIdentity(ctx, "", func(i *agent.Identity) { in.Body.Fields().Change(i, true) })
}

func (s *Server) upsertIdentity(ctx context.Context, in *struct{ Body letta.NewIdentity }) (letta.Identity, error) {
	for attempt := 0; ; attempt++ {
		has, err := s.Agents.Identities(ctx, rest.Org(ctx), agent.IdentityFilter{IdentifierKey: in.Body.IdentifierKey},
			db.Page{Limit: 1})
		if err != nil {
			return letta.Identity{}, err
		}
		id := ""
		if len(has) > 0 && in.Body.IdentifierKey != "" {
			id = has[0].ID
		}
		upserted, err := s.changeIdentity(ctx, id, func(i *agent.Identity) { in.Body.Fields().Change(i, true) })
		meanwhile := errors.Is(err, db.ErrConflict) || id != "" && errors.Is(err, db.ErrNotFound) // created, or deleted
		if !meanwhile || attempt == upsertAttempts {
			return upserted, err
		}
	}
}

// upsertAttempts bounds how often an upsert looks again after another request created or deleted the identity.
const upsertAttempts = 3

func (s *Server) updateIdentity(ctx context.Context, in *struct {
	OfIdentity
	Body letta.IdentityFields
}) (letta.Identity, error) {
	return s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) { in.Body.Change(i, false) })
}

func (s *Server) replaceProperties(ctx context.Context, in *struct {
	OfIdentity
	Body []letta.Property
}) (letta.Identity, error) {
	fields := letta.IdentityFields{Properties: rest.Opt[[]letta.Property]{Set: true,
		Value: append([]letta.Property{}, in.Body...)}}
	return s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) { fields.Change(i, true) })
}

func (s *Server) deleteIdentity(ctx context.Context, in *OfIdentity) (rest.Null, error) {
	return rest.Null{}, s.Agents.DeleteIdentity(ctx, rest.Org(ctx), string(in.IdentityID))
}

// AgentIdentity is the path of an agent's identity.
type AgentIdentity struct {
	rest.OfAgent
	OfIdentity
}

func (s *Server) attachIdentity(ctx context.Context, in *AgentIdentity) (rest.Null, error) {
	_, err := s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) {
		i.AgentIDs = append(i.AgentIDs, string(in.AgentID))
	})
	return rest.Null{}, err
}

func (s *Server) detachIdentity(ctx context.Context, in *AgentIdentity) (rest.Null, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return rest.Null{}, err
	}
	_, err := s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) {
		i.AgentIDs = slices.DeleteFunc(i.AgentIDs, func(id string) bool { return id == string(in.AgentID) })
	})
	return rest.Null{}, err
}

// BlockIdentity is the path of a block's identity.
type BlockIdentity struct {
	OfBlock
	OfIdentity
}

func (s *Server) attachBlockIdentity(ctx context.Context, in *BlockIdentity) (letta.Block, error) {
	_, err := s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) {
		i.BlockIDs = append(i.BlockIDs, string(in.BlockID))
	})
	if err != nil {
		return letta.Block{}, err
	}
	return s.getBlock(ctx, &in.OfBlock)
}

func (s *Server) detachBlockIdentity(ctx context.Context, in *BlockIdentity) (letta.Block, error) {
	b, err := s.getBlock(ctx, &in.OfBlock)
	if err != nil {
		return letta.Block{}, err
	}
	_, err = s.changeIdentity(ctx, string(in.IdentityID), func(i *agent.Identity) {
		i.BlockIDs = slices.DeleteFunc(i.BlockIDs, func(id string) bool { return id == b.ID })
	})
	return b, err
}
