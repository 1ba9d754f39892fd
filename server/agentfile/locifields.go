package agentfile

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

// fieldLoci is the field of a file that only Loci reads.
const fieldLoci = "loci"

// formatVersion is the version of Loci's own fields in a file. Other versions are refused.
const formatVersion = 1

// lociFields holds what has no field in Letta's schema.
type lociFields struct {
	Version int         `json:"version"`
	Full    bool        `json:"full"`
	Agents  []lociAgent `json:"agents"`
	Tools   []lociTool  `json:"tools"`

	SkillFolders []string `json:"skill_folders,omitempty"` // ids, in the file, of sources that are folders of skills
}

// lociTool holds a custom tool's data that has no field in Letta's schema.
type lociTool struct {
	Of        string    `json:"of"` // the id of the tool in the file
	ID        string    `json:"id"`
	Parallel  *bool     `json:"enable_parallel_execution"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Former    []string  `json:"former_names,omitempty"`
	db.Makers
}

// attachment says when an agent got a custom tool.
type attachment struct {
	Of string    `json:"of"` // the id of the tool in the file
	At time.Time `json:"at"`
}

// lociAgent holds an agent's data that has no field in Letta's schema. ID and times come from the database; an import
// keeps them only from a full file.
type lociAgent struct {
	Of        string       `json:"of"` // the id of the agent in the file
	ID        string       `json:"id"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	Tools     []string     `json:"tools"` // names of built-in tools; null means all
	Custom    []attachment `json:"custom_tools"`
	Fields    agentFields  `json:"fields"`
	Depth     int          `json:"depth,omitempty"` // how many levels of sub-agents it is below an agent
	Subagents []definition `json:"subagents,omitempty"`
	Thoughts  []string     `json:"thoughts,omitempty"` // ids in the file of messages with texts that are thoughts
	agent.LastRun
}

// definition is a definition of an agent's sub-agents. Its ids come from the server that wrote the file.
type definition struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Given       agent.Given `json:"given"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
}

// agentFields are fields of a request that creates an agent. They replace the fields of Letta's entry. In a file that
// is not full they hold only what Letta lacks.
type agentFields struct {
	Name         string          `json:"name,omitempty"`
	System       *string         `json:"system,omitempty"` // empty means the default instructions
	Settings     json.RawMessage `json:"model_settings,omitempty"`
	Compaction   json.RawMessage `json:"compaction_settings,omitempty"`
	MadeFor      string          `json:"made_for,omitempty"`
	RecallScope  string          `json:"recall_scope,omitempty"`
	Working      string          `json:"working_memory,omitempty"`
	Flush        json.RawMessage `json:"flush,omitempty"`
	Handover     json.RawMessage `json:"handover,omitempty"`
	Prompt       json.RawMessage `json:"prompt,omitempty"`
	Skills       json.RawMessage `json:"skills,omitempty"`
	Recall       json.RawMessage `json:"recall,omitempty"`
	Gateway      json.RawMessage `json:"gateway,omitempty"`
	OpenOnAttach *bool           `json:"open_on_attach,omitempty"`
	Autoclear    *bool           `json:"message_buffer_autoclear,omitempty"`
	Sleeptime    *bool           `json:"enable_sleeptime,omitempty"`
	Model        *string         `json:"model,omitempty"`
	Embedding    *string         `json:"embedding,omitempty"`
}
