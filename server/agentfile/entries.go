package agentfile

import (
	"encoding/json"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/files"
)

// agentOf holds an agent of the file, and the fields to create it with.
type agentOf struct {
	place string
	agent.New
	own    *lociAgent // nil if the file has no fields of Loci's for this agent
	fields struct {
		ID        json.RawMessage
		InContext *[]string     `json:"in_context_message_ids"`
		Messages  []fileMessage `json:"messages"`
		Views     []fileView    `json:"files_agents"`
		ToolIDs   []string      `json:"tool_ids"`
		Tools     []string      `json:"tools"`
		SourceIDs []string      `json:"source_ids"`
		FolderIDs []string      `json:"folder_ids"`
		BlockIDs  []string      `json:"block_ids"`
		Embedding struct {
			Handle *string `json:"handle"`
		} `json:"embedding_config"`
	}
}

// fileView is an entry in an agent's list of open files.
type fileView struct {
	FileID         string    `json:"file_id"`
	IsOpen         bool      `json:"is_open"`
	LastAccessedAt *fileTime `json:"last_accessed_at"`
}

func (a agentOf) limits() files.Limits {
	return agent.Agent{WindowLimit: a.WindowLimit, Model: a.Model, MaxFilesOpen: a.MaxFilesOpen, ViewChars: a.ViewChars,
		Settings: a.Settings}.Limits()
}

// fileText is a file with its text.
type fileText struct {
	ID       json.RawMessage `json:"id"`
	SourceID string          `json:"source_id"`
	Name     *string         `json:"file_name"`
	Original *string         `json:"original_file_name"`
	Content  *string         `json:"content"`
}
