package letta

import (
	"github.com/loci-memory/loci/archival"
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

// CreateArchive is a request to create an archive. Loci stores the client's choice of an embedding model, but uses its
// own model.
type CreateArchive struct {
	Name        string                `json:"name"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Embedding   rest.Opt[string]      `json:"embedding,omitzero"`
}

// UpdateArchive changes the fields that are present and not null.
type UpdateArchive struct {
	Name        rest.Opt[string]      `json:"name,omitzero"`
	Description rest.Opt[string]      `json:"description,omitzero"`
	Metadata    rest.Opt[rest.Object] `json:"metadata,omitzero"`
}

// ArchiveOf returns an archive in Letta's shape. config says how the archive's passages are searched.
func ArchiveOf(a archival.Archive, config files.EmbeddingConfig) Archive {
	return Archive{Archive: a, EmbeddingConfig: &config, VectorDBProvider: "native"}
}
