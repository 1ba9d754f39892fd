package letta

import (
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// CreateFolder is a request to create a folder. Loci ignores a client's choice of the embedding model.
type CreateFolder struct {
	Name         string                `json:"name"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Instructions rest.Opt[string]      `json:"instructions,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Skills       rest.Opt[bool]        `json:"skills,omitzero" doc:"Its files SKILL.md are skills of its agents."`
	ChunkTokens  rest.Opt[int]         `json:"embedding_chunk_size,omitzero" doc:"In tokens; 300 if absent."`
	UserID       rest.Opt[string]      `json:"user_id,omitzero" doc:"Whose folder it is: an identity, made if new."`
}

// UpdateFolder changes the fields that are present and not null.
type UpdateFolder struct {
	Name         rest.Opt[string]      `json:"name,omitzero"`
	Description  rest.Opt[string]      `json:"description,omitzero"`
	Instructions rest.Opt[string]      `json:"instructions,omitzero"`
	Metadata     rest.Opt[rest.Object] `json:"metadata,omitzero"`
	Skills       rest.Opt[bool]        `json:"skills,omitzero" doc:"Its files SKILL.md are skills of its agents."`
}

// UpdateFile is the body of a request that changes a file.
type UpdateFile struct {
	Name     rest.Opt[string]      `json:"name,omitzero" doc:"The file's name in the folder, which may have slashes."`
	Metadata rest.Opt[rest.Object] `json:"metadata,omitzero" doc:"Replaces the file's metadata."`
}

// FolderFilter narrows a list of folders.
type FolderFilter struct {
	Name string `query:"name" doc:"Part of the name, in any case."`
}

// Reparsing is the answer to a request to parse a folder again.
type Reparsing struct {
	Files int `json:"file_count" doc:"Files of the folder; those that are being parsed already are left alone."`
}

// Totals are the number and size of an organization's folders and files.
type Totals struct {
	Folders   int           `json:"total_sources"`
	Files     int           `json:"total_files"`
	SizeBytes int64         `json:"total_size"`
	PerFolder []FolderTotal `json:"sources"`
}

// FolderTotal is the number and size of a folder's files. Listed is filled only on request, with at most 1,000 files.
type FolderTotal struct {
	files.Total
	Listed []FileSize `json:"files"`
}

// FileSize is a file in a FolderTotal.
type FileSize struct {
	ID        string `json:"file_id"`
	Name      string `json:"file_name"`
	SizeBytes int64  `json:"file_size"`
}

// FileSizeOf returns a file's entry for a FolderTotal.
func FileSizeOf(f files.File) FileSize { return FileSize{f.ID, f.Name, f.SizeBytes} }

// AgentFiles is a page of an agent's files.
type AgentFiles struct {
	Files      []files.AgentFile `json:"files"`
	NextCursor *string           `json:"next_cursor"`
	HasMore    bool              `json:"has_more"`
}
