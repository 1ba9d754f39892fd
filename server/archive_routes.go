package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) archiveRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/archives", "create_archive: Create an archive.", s.createArchive)
	rest.Get(a.For(rest.Read), "/v1/archives", "list_archives: List archives.", s.listArchives)
	rest.Get(a.For(rest.Read), "/v1/archives/{archive_id}", "get_archive: Get an archive.", s.getArchive)
	rest.Patch(a.For(rest.Write), "/v1/archives/{archive_id}",
		"update_archive: Change an archive. Fields that are absent stay.",
		s.updateArchive)
	rest.Delete(a.For(rest.Write), "/v1/archives/{archive_id}",
		"delete_archive: Delete an archive. Its passages go with it.",
		s.deleteArchive, rest.NoContent)
	rest.Get(a.For(rest.Read), "/v1/archives/{archive_id}/agents",
		"list_archive_agents: List the agents that have an archive.",
		s.archiveAgents)
	rest.Post(a.For(rest.Write), "/v1/archives/{archive_id}/passages",
		"create_archive_passage: Insert a passage into an archive. A long text becomes several passages; the answer is "+
			"the first.",
		s.createArchivePassage)
	rest.Get(a.For(rest.Read), "/v1/archives/{archive_id}/passages/{passage_id}",
		"get_archive_passage: Get a passage of an archive.", s.archivePassage, rest.Own)
	rest.Delete(a.For(rest.Write), "/v1/archives/{archive_id}/passages/{passage_id}",
		"delete_archive_passage: Delete a passage of an archive.",
		s.deleteArchivePassage, rest.NoContent)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/archives/attach/{archive_id}",
		"attach_archive: Attach an archive to an agent. Again changes nothing.", s.attachArchive)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/archives/detach/{archive_id}",
		"detach_archive: Detach an archive from an agent. The archive stays.", s.detachArchive)
}

func (s *Server) archiveOf(c archival.Archive) letta.Archive {
	return letta.ArchiveOf(c, s.Files.Embedding(files.DefaultChunkTokens))
}

// OfArchive holds the path parameter of operations on an archive.
type OfArchive struct {
	ArchiveID rest.ArchiveID `path:"archive_id"`
}

func (s *Server) createArchive(ctx context.Context, input *struct{ Body letta.CreateArchive }) (letta.Archive, error) {
	b := input.Body
	c, err := s.Archival.CreateArchive(ctx, rest.Org(ctx), archival.NewArchive{Name: b.Name,
		Description: b.Description.Pointer(), Metadata: json.RawMessage(b.Metadata.Value), Embedding: b.Embedding.Pointer()})
	return s.archiveOf(c), err
}

func (s *Server) getArchive(ctx context.Context, input *OfArchive) (letta.Archive, error) {
	c, err := s.Archival.Archive(ctx, rest.Org(ctx), string(input.ArchiveID))
	return s.archiveOf(c), err
}

func (s *Server) updateArchive(ctx context.Context, input *struct {
	OfArchive
	Body letta.UpdateArchive
}) (letta.Archive, error) {
	c, err := s.Archival.UpdateArchive(ctx, rest.Org(ctx), string(input.ArchiveID), archival.ArchiveUpdate{
		Name: input.Body.Name.Pointer(), Description: input.Body.Description.Pointer(),
		Metadata: json.RawMessage(input.Body.Metadata.Value)})
	return s.archiveOf(c), err
}

func (s *Server) listArchives(ctx context.Context, input *struct {
	Name    string `query:"name" doc:"The exact name."`
	AgentID string `query:"agent_id" doc:"Attached to this agent."`
	rest.Paging
}) ([]letta.Archive, error) {
	list, err := s.Archival.Archives(ctx, rest.Org(ctx), archival.Of(input.AgentID), input.Name, input.Page(50,
		rest.NewestFirst))
	return rest.Each(list, s.archiveOf), err
}

func (s *Server) deleteArchive(ctx context.Context, input *OfArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.DeleteArchive(ctx, rest.Org(ctx), string(input.ArchiveID))
}

func (s *Server) archiveAgents(ctx context.Context, input *struct {
	OfArchive
	AgentPage
}) ([]letta.AgentState, error) {
	ids, err := s.Archival.ArchiveAgents(ctx, rest.Org(ctx), string(input.ArchiveID))
	return s.statesOf(ctx, input.AgentPage, ids, err)
}

// archiveZone returns the time zone for times without an offset in an archive: the zone that all agents with the
// archive share. ErrNotFound if the archive does not exist.
func (s *Server) archiveZone(ctx context.Context, archiveID string) (*time.Location, error) {
	agents, err := s.Archival.ArchiveAgents(ctx, rest.Org(ctx), archiveID)
	if err != nil {
		return nil, err
	}
	return s.Agents.Zone(ctx, rest.Org(ctx), agents...)
}

func (s *Server) createArchivePassage(ctx context.Context, input *struct {
	OfArchive
	Body letta.NewPassage
}) (letta.ArchivalPassage, error) {
	zone, err := s.archiveZone(ctx, string(input.ArchiveID))
	if err != nil {
		return letta.ArchivalPassage{}, err
	}
	d, err := input.Body.Draft(zone)
	if err != nil {
		return letta.ArchivalPassage{}, err
	}
	list, err := s.Archival.Insert(ctx, rest.Org(ctx), string(input.ArchiveID), []archival.Draft{d})
	if err != nil {
		return letta.ArchivalPassage{}, withPassage(err)
	}
	rest.Warn(ctx, letta.LeftWarnings(list, 0, patchedPassages)...)
	return s.withSimilar(ctx, list)[0], nil // the first passage, if the text was split into several
}

// ArchivePassage holds the path parameters of operations on a passage of an archive.
type ArchivePassage struct {
	OfArchive
	PassageID string `path:"passage_id"`
}

func (s *Server) archivePassage(ctx context.Context, input *struct {
	ArchivePassage
	letta.WithEmbeddings
}) (letta.ArchivalPassage, error) {
	p, err := s.Archival.ArchivePassage(ctx, rest.Org(ctx), string(input.ArchiveID), input.PassageID)
	if err != nil {
		return letta.ArchivalPassage{}, err
	}
	passages, err := s.showPassages(ctx, input.WithEmbeddings, p)
	return passages[0], err
}

func (s *Server) deleteArchivePassage(ctx context.Context, input *ArchivePassage) (rest.Null, error) {
	return rest.Null{}, s.Archival.DeleteArchivePassage(ctx, rest.Org(ctx), string(input.ArchiveID), input.PassageID)
}

// AgentArchive holds the path parameters for attaching and detaching an archive.
type AgentArchive struct {
	rest.OfAgent
	OfArchive
}

func (s *Server) attachArchive(ctx context.Context, input *AgentArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.Attach(ctx, rest.Org(ctx), string(input.AgentID), string(input.ArchiveID))
}

func (s *Server) detachArchive(ctx context.Context, input *AgentArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.Detach(ctx, rest.Org(ctx), string(input.AgentID), string(input.ArchiveID))
}
