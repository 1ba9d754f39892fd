package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) passageRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/agents/{agent_id}/archival-memory",
		"create_agent_passage: Insert a passage into an agent's archive. An agent without an archive gets one.",
		withAgent(s, s.createPassage), rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/archival-memory",
		"list_agent_passages: List an agent's passages.", s.listPassages, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/archival-memory/search",
		"search_agent_passages: Search an agent's passages. By meaning and by words.",
		withAgent(s, s.searchPassages), rest.OfUsers)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/archival-memory/{memory_id}",
		"update_agent_passage: Change a passage of an agent. Fields that are absent stay.", s.updatePassage, rest.Own)
	rest.Delete(a.For(rest.Write), "/v1/agents/{agent_id}/archival-memory/{memory_id}",
		"delete_agent_passage: Delete a passage of an agent.",
		withAgent(s, s.deletePassage))
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/archival-memory/facets",
		"count_agent_passages: Count an agent's passages by tag, day and value of metadata.",
		withAgent(s, s.agentFacets), rest.Own, rest.OfUsers)
	rest.Post(a.For(rest.Read), "/v1/passages/facets",
		"count_passages: Count passages by tag, day and value of metadata. Of an agent, an archive, or all.",
		s.passageFacets, rest.Own, rest.OfUsers)
	rest.Post(a.For(rest.Read), "/v1/passages/search",
		"search_passages: Search passages. Of an agent, an archive, or all.",
		s.searchAllPassages, rest.OfUsers)
}

// AgentPassage holds the path parameters for a passage in an agent's archives.
type AgentPassage struct {
	rest.OfAgent
	PassageID string `path:"memory_id"`
}

func (s *Server) createPassage(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	Body letta.NewAgentPassage
}) ([]letta.ArchivalPassage, error) {
	d, err := input.Body.Draft(a.Zone())
	if err != nil {
		return nil, err
	}
	users, err := s.writer(ctx, input.Body.UserID)
	if err != nil {
		return nil, err
	}
	list, err := s.Archival.InsertFor(ctx, rest.Org(ctx), archival.Reach{AgentID: a.ID, Users: users}, []archival.Draft{d})
	rest.Warn(ctx, letta.LeftWarnings(list, 0, "/v1/agents/"+a.ID+"/archival-memory/")...)
	if err != nil {
		return nil, withPassage(err)
	}
	return s.withSimilar(ctx, list), nil
}

// withSimilar returns inserted passages in Letta's shape. A single one names those that are similar.
func (s *Server) withSimilar(ctx context.Context, list []archival.Inserted) []letta.ArchivalPassage {
	shown := rest.Each(list, letta.InsertedOf)
	if len(list) == 1 {
		similar, err := s.Archival.Similar(ctx, rest.Org(ctx), list[0])
		if err != nil { // the passage is stored
			rest.Warn(ctx, "The passage is stored; those that are similar could not be looked up")
		}
		shown[0].Similar = similar
	}
	return shown
}

func (s *Server) listPassages(ctx context.Context, input *struct {
	rest.OfAgent
	Search    string         `query:"search" doc:"Part of the text, in any case."`
	Before    string         `query:"before" doc:"Passages earlier than the one with this id."`
	After     string         `query:"after" doc:"Passages later than the one with this id."`
	Limit     rest.Limit     `query:"limit" minimum:"0" doc:"Of passages, at most 1,000; 100 if absent."`
	Ascending rest.Opt[bool] `query:"ascending" doc:"The earliest first; true if absent."`
	OfUser
	letta.WithEmbeddings
	letta.HeldAt
}) ([]letta.ArchivalPassage, error) {
	asOf, err := s.heldFor(ctx, string(input.AgentID), input.HeldAt)
	if err != nil {
		return nil, err
	}
	p := db.Page{Before: input.Before, After: input.After, Limit: rest.LimitOf(input.Limit, 100),
		Ascending: !input.Ascending.Set || input.Ascending.Value}
	if !p.Ascending { // after always means later, whatever the order
		p.Before, p.After = p.After, p.Before
	}
	reach, err := s.archives(ctx, string(input.AgentID), input.UserID)
	if err != nil {
		return nil, err
	}
	list, err := s.Archival.Passages(ctx, rest.Org(ctx), reach,
		archival.PassageList{Contains: input.Search, Held: asOf}, p)
	if err != nil {
		return nil, err
	}
	return s.showPassages(ctx, input.WithEmbeddings, list...)
}

func (s *Server) searchPassages(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	letta.PassageSearch
	OfUser
}) (letta.FoundPassages, error) {
	if _, err := s.searchMode(input.Mode); err != nil {
		return letta.FoundPassages{}, err
	}
	q, err := input.ArchivalQuery(a.ID, a.Zone())
	if err != nil {
		return letta.FoundPassages{}, err
	}
	if q.Users, err = s.users(ctx, input.UserID); err != nil {
		return letta.FoundPassages{}, err
	}
	if strings.TrimSpace(q.Text) == "" {
		rest.Warn(ctx, letta.SpanWarnings(q.Start, q.End)...)
		return letta.FoundPassagesOf(nil, nil), nil
	}
	results, err := s.Archival.Search(ctx, rest.Org(ctx), q)
	rest.Warn(ctx, append(letta.SpanWarnings(q.Start, q.End), results.Sentences()...)...)
	found := letta.FoundPassagesOf(results.Hits, a.Zone())
	found.SearchedFor = results.SearchedFor
	return found, err
}

// agentFacets counts the passages that a search of an agent would see.
func (s *Server) agentFacets(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	letta.HeldAt
	letta.Narrowed
	OfUser
}) (archival.Facets, error) {
	held, err := input.Held(a.Zone())
	if err != nil {
		return archival.Facets{}, err
	}
	users, err := s.users(ctx, input.UserID)
	if err != nil {
		return archival.Facets{}, err
	}
	return s.Archival.Facets(ctx, rest.Org(ctx), archival.Query{AgentID: a.ID, Users: users, Held: held,
		Filter: json.RawMessage(input.Filter), Zone: a.Zone()})
}

// PassageScope says which passages are counted.
type PassageScope struct {
	AgentID   rest.Opt[string] `json:"agent_id,omitzero" doc:"In the archives of an agent."`
	ArchiveID rest.Opt[string] `json:"archive_id,omitzero" doc:"Of one archive."`
	UserID    rest.Opt[string] `json:"user_id,omitzero" doc:"Of this user and of nobody: an identity."`
	Filter    rest.Filter      `json:"filter,omitzero" doc:"Only passages that fit."`
}

func (s *Server) passageFacets(ctx context.Context, input *struct{ Body PassageScope }) (archival.Facets, error) {
	b := input.Body
	zone, err := s.passageZone(ctx, b.AgentID.Value, b.ArchiveID.Value)
	if err != nil {
		return archival.Facets{}, err
	}
	users, err := s.users(ctx, b.UserID)
	if err != nil {
		return archival.Facets{}, err
	}
	return s.Archival.Facets(ctx, rest.Org(ctx), archival.Query{AgentID: b.AgentID.Value, ArchiveID: b.ArchiveID.Value,
		Users: users, Filter: json.RawMessage(b.Filter), Zone: zone})
}

// passageZone returns the timezone of an agent, of the agents of an archive, or UTC for all passages.
func (s *Server) passageZone(ctx context.Context, agentID, archiveID string) (*time.Location, error) {
	switch {
	case agentID != "":
		return s.Agents.Zone(ctx, rest.Org(ctx), agentID)
	case archiveID != "":
		return s.archiveZone(ctx, archiveID)
	}
	return time.UTC, nil
}

func (s *Server) updatePassage(ctx context.Context, input *struct {
	AgentPassage
	Body letta.UpdatePassage
}) (letta.ArchivalPassage, error) {
	zone, err := s.Agents.Zone(ctx, rest.Org(ctx), string(input.AgentID))
	if err != nil {
		return letta.ArchivalPassage{}, err
	}
	u, err := input.Body.Update(zone)
	if err != nil {
		return letta.ArchivalPassage{}, err
	}
	p, err := s.Archival.UpdatePassage(ctx, rest.Org(ctx), archival.Of(string(input.AgentID)), input.PassageID, u)
	return letta.PassageOf(p), withPassage(err)
}

// heldFor returns which facts a request about an agent sees: those that held at the time that it asked for. Times
// without an offset are in the agent's zone.
func (s *Server) heldFor(ctx context.Context, agentID string, asked letta.HeldAt) (db.Held, error) {
	if asked.AsOf == "" {
		return asked.Held(nil)
	}
	zone, err := s.Agents.Zone(ctx, rest.Org(ctx), agentID)
	if err != nil {
		return db.Held{}, err
	}
	return asked.Held(zone)
}

func (s *Server) deletePassage(ctx context.Context, a agent.Agent, input *AgentPassage) (letta.Message, error) {
	err := s.Archival.DeletePassage(ctx, rest.Org(ctx), archival.Of(a.ID), input.PassageID)
	return letta.Message{Message: fmt.Sprintf("Memory id=%s successfully deleted", input.PassageID)}, err
}

func (s *Server) searchAllPassages(ctx context.Context, input *struct {
	letta.Explained
	Body letta.SearchPassages
}) ([]letta.PassageHit, error) {
	if _, err := s.searchMode(input.Body.Mode.Value); err != nil {
		return nil, err
	}
	zone, err := s.passageZone(ctx, input.Body.AgentID.Value, input.Body.ArchiveID.Value)
	if err != nil {
		return nil, err
	}
	q, err := input.Body.ArchivalQuery(zone)
	if err != nil {
		return nil, err
	}
	q.Explain, q.Weight = input.Explain, input.Weight
	if q.Users, err = s.users(ctx, input.Body.UserID); err != nil {
		return nil, err
	}
	results, err := s.Archival.Search(ctx, rest.Org(ctx), q)
	rest.Warn(ctx, append(letta.SpanWarnings(q.Start, q.End), results.Sentences()...)...)
	hits := rest.Each(results.Hits, letta.PassageHitOf)
	for i := range hits {
		hits[i].SearchedFor = results.SearchedFor
	}
	return hits, err
}
