package letta

import (
	"github.com/loci-memory/loci/files"
)

// AgentFiles is a page of an agent's files.
type AgentFiles struct {
	Files      []files.AgentFile `json:"files"`
	NextCursor *string           `json:"next_cursor"`
	HasMore    bool              `json:"has_more"`
}
