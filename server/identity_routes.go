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

// OfIdentity holds the path parameter of operations on an identity.
type OfIdentity struct {
	IdentityID rest.IdentityID `path:"identity_id"`
}

func (s *Server) listIdentities(ctx context.Context, input *struct {
	letta.IdentityFilter
	rest.Paging
}) ([]letta.Identity, error) {
	list, err := s.Agents.Identities(ctx, rest.Org(ctx), input.Filter(), input.Page(50, rest.NewestFirst))
	return rest.Each(list, letta.IdentityOf), err
}

func (s *Server) countIdentities(ctx context.Context, input *letta.IdentityFilter) (int, error) {
	return s.Agents.CountIdentities(ctx, rest.Org(ctx), input.Filter())
}

func (s *Server) getIdentity(ctx context.Context, input *OfIdentity) (letta.Identity, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(input.IdentityID))
	return letta.IdentityOf(i), err
}

func (s *Server) identityAgents(ctx context.Context, input *struct {
	OfIdentity
	AgentPage
}) ([]letta.AgentState, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(input.IdentityID))
	return s.statesOf(ctx, input.AgentPage, i.AgentIDs, err)
}

func (s *Server) identityBlocks(ctx context.Context, input *struct {
	OfIdentity
	rest.Paging
}) ([]letta.Block, error) {
	i, err := s.Agents.Identity(ctx, rest.Org(ctx), string(input.IdentityID))
	if err != nil {
		return nil, err
	}
	blocks := []letta.Block{}
	for _, id := range rest.Paged(i.BlockIDs, input.Page(50, rest.NewestFirst), func(id string) string { return id }) {
		b, err := s.Blocks.Block(ctx, rest.Org(ctx), id)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, letta.BlockOf(b))
	}
	return blocks, nil
}

// changeIdentity changes the identity with an id. If the id is empty, it creates an identity.
func (s *Server) changeIdentity(ctx context.Context, id string, change func(*agent.Identity)) (letta.Identity, error) {
	i, err := s.Agents.ChangeIdentity(ctx, rest.Org(ctx), id, func(i *agent.Identity) error {
		change(i)
		return nil
	})
	return letta.IdentityOf(i), err
}

func (s *Server) createIdentity(ctx context.Context, input *struct{ Body letta.NewIdentity }) (letta.Identity, error) {
	return s.changeIdentity(ctx, "", func(i *agent.Identity) { input.Body.Fields().Change(i, true) })
}

func (s *Server) upsertIdentity(ctx context.Context, input *struct{ Body letta.NewIdentity }) (letta.Identity, error) {
	for attempt := 0; ; attempt++ {
		existing,
			err := s.Agents.Identities(ctx, rest.Org(ctx), agent.IdentityFilter{IdentifierKey: input.Body.IdentifierKey},
			db.Page{Limit: 1})
		if err != nil {
			return letta.Identity{}, err
		}
		id := ""
		if len(existing) > 0 && input.Body.IdentifierKey != "" {
			id = existing[0].ID
		}
		upserted, err := s.changeIdentity(ctx, id, func(i *agent.Identity) { input.Body.Fields().Change(i, true) })
		meanwhile := errors.Is(err, db.ErrConflict) || id != "" &&
			errors.Is(err, db.ErrNotFound) // another request created or deleted the identity meanwhile
		if !meanwhile || attempt == upsertAttempts {
			return upserted, err
		}
	}
}

// upsertAttempts is how often an upsert tries again after another request created or deleted the identity.
const upsertAttempts = 3

func (s *Server) updateIdentity(ctx context.Context, input *struct {
	OfIdentity
	Body letta.IdentityFields
}) (letta.Identity, error) {
	return s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) { input.Body.Change(i, false) })
}

func (s *Server) replaceProperties(ctx context.Context, input *struct {
	OfIdentity
	Body []letta.Property
}) (letta.Identity, error) {
	fields := letta.IdentityFields{Properties: rest.Opt[[]letta.Property]{Set: true,
		Value: append([]letta.Property{}, input.Body...)}}
	return s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) { fields.Change(i, true) })
}

func (s *Server) deleteIdentity(ctx context.Context, input *OfIdentity) (rest.Null, error) {
	return rest.Null{}, s.Agents.DeleteIdentity(ctx, rest.Org(ctx), string(input.IdentityID))
}

// AgentIdentity holds the path parameters for attaching an identity to an agent.
type AgentIdentity struct {
	rest.OfAgent
	OfIdentity
}

func (s *Server) attachIdentity(ctx context.Context, input *AgentIdentity) (rest.Null, error) {
	_, err := s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) {
		i.AgentIDs = append(i.AgentIDs, string(input.AgentID))
	})
	return rest.Null{}, err
}

func (s *Server) detachIdentity(ctx context.Context, input *AgentIdentity) (rest.Null, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(input.AgentID)); err != nil {
		return rest.Null{}, err
	}
	_, err := s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) {
		i.AgentIDs = slices.DeleteFunc(i.AgentIDs, func(id string) bool { return id == string(input.AgentID) })
	})
	return rest.Null{}, err
}

// BlockIdentity holds the path parameters for attaching an identity to a block.
type BlockIdentity struct {
	OfBlock
	OfIdentity
}

func (s *Server) attachBlockIdentity(ctx context.Context, input *BlockIdentity) (letta.Block, error) {
	_, err := s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) {
		i.BlockIDs = append(i.BlockIDs, string(input.BlockID))
	})
	if err != nil {
		return letta.Block{}, err
	}
	return s.getBlock(ctx, &input.OfBlock)
}

func (s *Server) detachBlockIdentity(ctx context.Context, input *BlockIdentity) (letta.Block, error) {
	b, err := s.getBlock(ctx, &input.OfBlock)
	if err != nil {
		return letta.Block{}, err
	}
	_, err = s.changeIdentity(ctx, string(input.IdentityID), func(i *agent.Identity) {
		i.BlockIDs = slices.DeleteFunc(i.BlockIDs, func(id string) bool { return id == b.ID })
	})
	return b, err
}
