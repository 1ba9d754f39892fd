package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// Archive is an archive in Letta's shape.
type Archive struct {
	archival.Archive
	EmbeddingConfig  *files.EmbeddingConfig `json:"embedding_config"`
	VectorDBProvider string                 `json:"vector_db_provider"`
	CreatedByID      rest.Null              `json:"created_by_id"`
	LastUpdatedByID  rest.Null              `json:"last_updated_by_id"`
}

func (s *Server) archiveOf(c archival.Archive) Archive {
	config := s.Files.Embedding(files.DefaultChunkTokens)
	return Archive{Archive: c, EmbeddingConfig: &config, VectorDBProvider: "native"}
}

// OfArchive is the path of an archive.
type OfArchive struct {
	ArchiveID rest.ArchiveID `path:"archive_id"`
}

// CreateArchive is what an archive is created from. Loci embeds with its own model, so a client's choice of one is only kept.
type CreateArchive struct {
	Name        string                `json:"name"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Embedding   rest.Opt[string]      `json:"embedding,omitzero"`
}

// UpdateArchive changes the fields that it has; null leaves one alone.
type UpdateArchive struct {
	Name        rest.Opt[string]      `json:"name,omitzero"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
}

func (s *Server) createArchive(ctx context.Context, in *struct{ Body CreateArchive }) (Archive, error) {
	c, err := s.Archival.CreateArchive(ctx, rest.Org(ctx), archival.NewArchive{Name: in.Body.Name, Description: in.Body.Description.Pointer(),
		Metadata: json.RawMessage(in.Body.Metadata.Value), Embedding: in.Body.Embedding.Pointer()})
	return s.archiveOf(c), err
}

func (s *Server) getArchive(ctx context.Context, in *OfArchive) (Archive, error) {
	c, err := s.Archival.Archive(ctx, rest.Org(ctx), string(in.ArchiveID))
	return s.archiveOf(c), err
}

func (s *Server) updateArchive(ctx context.Context, in *struct {
	OfArchive
	Body UpdateArchive
}) (Archive, error) {
	c, err := s.Archival.UpdateArchive(ctx, rest.Org(ctx), string(in.ArchiveID), archival.ArchiveUpdate{Name: in.Body.Name.Pointer(),
		Description: in.Body.Description.Pointer(), Metadata: json.RawMessage(in.Body.Metadata.Value)})
	return s.archiveOf(c), err
}

func (s *Server) listArchives(ctx context.Context, in *struct {
	Name    string `query:"name" doc:"The exact name."`
	AgentID string `query:"agent_id" doc:"Attached to this agent."`
	rest.Paging
}) ([]Archive, error) {
	list, err := s.Archival.Archives(ctx, rest.Org(ctx), in.AgentID, in.Name, in.Page(50, rest.NewestFirst))
	archives := make([]Archive, len(list))
	for i, c := range list {
		archives[i] = s.archiveOf(c)
	}
	return archives, err
}

func (s *Server) deleteArchive(ctx context.Context, in *OfArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.DeleteArchive(ctx, rest.Org(ctx), string(in.ArchiveID))
}

func (s *Server) archiveAgents(ctx context.Context, in *struct {
	OfArchive
	Included
	rest.Paging
}) ([]AgentState, error) {
	ids, err := s.Archival.ArchiveAgents(ctx, rest.Org(ctx), string(in.ArchiveID))
	if err != nil {
		return nil, err
	}
	return s.statesOf(ctx, rest.Paged(ids, in.Page(50, rest.NewestFirst), func(id string) string { return id }), in.fileBlocks())
}

func (s *Server) createArchivePassage(ctx context.Context, in *struct {
	OfArchive
	Body NewPassage
}) (ArchivalPassage, error) {
	d, err := in.Body.draft()
	if err != nil {
		return ArchivalPassage{}, err
	}
	list, err := s.Archival.Insert(ctx, rest.Org(ctx), string(in.ArchiveID), []archival.Draft{d})
	if err != nil {
		return ArchivalPassage{}, err
	}
	return insertedOf(list)[0], nil // of a text that became several, the first
}

func (s *Server) deleteArchivePassage(ctx context.Context, in *struct {
	OfArchive
	PassageID string `path:"passage_id"`
}) (rest.Null, error) {
	c, err := s.Archival.Archive(ctx, rest.Org(ctx), string(in.ArchiveID))
	if err != nil {
		return rest.Null{}, err
	}
	p, err := s.Archival.Passage(ctx, rest.Org(ctx), "", in.PassageID)
	if err != nil {
		return rest.Null{}, err
	}
	if p.ArchiveID != c.ID {
		return rest.Null{}, db.Invalid("Passage %s does not belong to archive %s", p.ID, c.ID)
	}
	return rest.Null{}, s.Archival.DeletePassage(ctx, rest.Org(ctx), "", in.PassageID)
}

// AgentArchive is the path of an archive as it is attached and detached.
type AgentArchive struct {
	rest.OfAgent
	OfArchive
}

func (s *Server) attachArchive(ctx context.Context, in *AgentArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.Attach(ctx, rest.Org(ctx), string(in.AgentID), string(in.ArchiveID))
}

func (s *Server) detachArchive(ctx context.Context, in *AgentArchive) (rest.Null, error) {
	return rest.Null{}, s.Archival.Detach(ctx, rest.Org(ctx), string(in.AgentID), string(in.ArchiveID))
}
