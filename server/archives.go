package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// Archive is an archive in Letta's shape.
type Archive struct {
	archival.Archive
	EmbeddingConfig  *files.EmbeddingConfig `json:"embedding_config"`
	VectorDBProvider string                 `json:"vector_db_provider"`
	CreatedByID      null                   `json:"created_by_id"`
	LastUpdatedByID  null                   `json:"last_updated_by_id"`
}

func (s *Server) archiveOf(c archival.Archive) Archive {
	config := s.Files.Embedding(files.DefaultChunkTokens)
	return Archive{Archive: c, EmbeddingConfig: &config, VectorDBProvider: "native"}
}

// OfArchive is the path of an archive.
type OfArchive struct {
	ArchiveID archiveID `path:"archive_id"`
}

// CreateArchive is what an archive is created from. Loci embeds with its own model, so a client's choice of one is only kept.
type CreateArchive struct {
	Name        string      `json:"name"`
	Description Opt[string] `json:"description,omitzero"`
	Metadata    Opt[object] `json:"metadata,omitzero"`
	Embedding   Opt[string] `json:"embedding,omitzero"`
}

// UpdateArchive changes the fields that it has; null leaves one alone.
type UpdateArchive struct {
	Name        Opt[string] `json:"name,omitzero"`
	Description Opt[string] `json:"description,omitzero"`
	Metadata    Opt[object] `json:"metadata,omitzero"`
}

func (s *Server) createArchive(ctx context.Context, in *struct{ Body CreateArchive }) (Archive, error) {
	c, err := s.Archival.CreateArchive(ctx, orgOf(ctx), archival.NewArchive{Name: in.Body.Name, Description: in.Body.Description.Pointer(),
		Metadata: json.RawMessage(in.Body.Metadata.Value), Embedding: in.Body.Embedding.Pointer()})
	return s.archiveOf(c), err
}

func (s *Server) getArchive(ctx context.Context, in *OfArchive) (Archive, error) {
	c, err := s.Archival.Archive(ctx, orgOf(ctx), string(in.ArchiveID))
	return s.archiveOf(c), err
}

func (s *Server) updateArchive(ctx context.Context, in *struct {
	OfArchive
	Body UpdateArchive
}) (Archive, error) {
	c, err := s.Archival.UpdateArchive(ctx, orgOf(ctx), string(in.ArchiveID), archival.ArchiveUpdate{Name: in.Body.Name.Pointer(),
		Description: in.Body.Description.Pointer(), Metadata: json.RawMessage(in.Body.Metadata.Value)})
	return s.archiveOf(c), err
}

func (s *Server) listArchives(ctx context.Context, in *struct {
	Name    string `query:"name" doc:"The exact name."`
	AgentID string `query:"agent_id" doc:"Attached to this agent."`
	Paging
}) ([]Archive, error) {
	list, err := s.Archival.Archives(ctx, orgOf(ctx), in.AgentID, in.Name, in.page(50, newestFirst))
	archives := make([]Archive, len(list))
	for i, c := range list {
		archives[i] = s.archiveOf(c)
	}
	return archives, err
}

func (s *Server) deleteArchive(ctx context.Context, in *OfArchive) (null, error) {
	return null{}, s.Archival.DeleteArchive(ctx, orgOf(ctx), string(in.ArchiveID))
}

func (s *Server) archiveAgents(ctx context.Context, in *struct {
	OfArchive
	Included
	Paging
}) ([]AgentState, error) {
	ids, err := s.Archival.ArchiveAgents(ctx, orgOf(ctx), string(in.ArchiveID))
	if err != nil {
		return nil, err
	}
	return s.statesOf(ctx, paged(ids, in.page(50, newestFirst), func(id string) string { return id }), in.fileBlocks())
}

func (s *Server) createArchivePassage(ctx context.Context, in *struct {
	OfArchive
	Body NewPassage
}) (ArchivalPassage, error) {
	d, err := in.Body.draft()
	if err != nil {
		return ArchivalPassage{}, err
	}
	list, err := s.Archival.Insert(ctx, orgOf(ctx), string(in.ArchiveID), []archival.Draft{d})
	if err != nil {
		return ArchivalPassage{}, err
	}
	return insertedOf(list)[0], nil // of a text that became several, the first
}

func (s *Server) deleteArchivePassage(ctx context.Context, in *struct {
	OfArchive
	PassageID string `path:"passage_id"`
}) (null, error) {
	c, err := s.Archival.Archive(ctx, orgOf(ctx), string(in.ArchiveID))
	if err != nil {
		return null{}, err
	}
	p, err := s.Archival.Passage(ctx, orgOf(ctx), "", in.PassageID)
	if err != nil {
		return null{}, err
	}
	if p.ArchiveID != c.ID {
		return null{}, db.Invalid("Passage %s does not belong to archive %s", p.ID, c.ID)
	}
	return null{}, s.Archival.DeletePassage(ctx, orgOf(ctx), "", in.PassageID)
}

// AgentArchive is the path of an archive as it is attached and detached.
type AgentArchive struct {
	OfAgent
	OfArchive
}

func (s *Server) attachArchive(ctx context.Context, in *AgentArchive) (null, error) {
	return null{}, s.Archival.Attach(ctx, orgOf(ctx), string(in.AgentID), string(in.ArchiveID))
}

func (s *Server) detachArchive(ctx context.Context, in *AgentArchive) (null, error) {
	return null{}, s.Archival.Detach(ctx, orgOf(ctx), string(in.AgentID), string(in.ArchiveID))
}
