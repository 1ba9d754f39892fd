package agentfile

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// agentEntry is an agent in a file. It has every field of Letta's schema except messages and in_context_message_ids,
// which follow it in the file. Fields that Loci does not have are empty.
type agentEntry struct {
	ID              string          `json:"id"`
	Name            string          `json:"name"`
	Description     *string         `json:"description"`
	Metadata        json.RawMessage `json:"metadata"`
	System          string          `json:"system"`
	AgentType       string          `json:"agent_type"`
	Tags            []string        `json:"tags"`
	Timezone        string          `json:"timezone"`
	Model           *string         `json:"model"`
	Embedding       *string         `json:"embedding"`
	LLMConfig       map[string]any  `json:"llm_config"`
	EmbeddingConfig any             `json:"embedding_config"`
	WindowLimit     *int            `json:"context_window_limit"`
	ToolRules       json.RawMessage `json:"tool_rules"`
	ResponseFormat  json.RawMessage `json:"response_format"`
	Autoclear       bool            `json:"message_buffer_autoclear"`
	Sleeptime       *bool           `json:"enable_sleeptime"`
	MaxFilesOpen    *int            `json:"max_files_open"`
	ViewChars       *int            `json:"per_file_view_window_char_limit"`
	Hidden          bool            `json:"hidden"`
	ToolIDs         []string        `json:"tool_ids"`
	SourceIDs       []string        `json:"source_ids"`
	BlockIDs        []string        `json:"block_ids"`
	MemoryBlocks    []any           `json:"memory_blocks"`
	Tools           []any           `json:"tools"`
	InitialMessages rest.Null       `json:"initial_message_sequence"`
	BaseTools       bool            `json:"include_base_tools"`
	MultiAgentTools bool            `json:"include_multi_agent_tools"`
	BaseToolRules   bool            `json:"include_base_tool_rules"`
	DefaultSource   bool            `json:"include_default_source"`
	ChunkTokens     *int            `json:"embedding_chunk_size"`
	MaxTokens       rest.Null       `json:"max_tokens"`
	MaxThinking     rest.Null       `json:"max_reasoning_tokens"`
	Reasons         bool            `json:"enable_reasoner"`
	FromTemplate    rest.Null       `json:"from_template"`
	Template        bool            `json:"template"`
	Project         rest.Null       `json:"project"`
	Environment     struct{}        `json:"tool_exec_environment_variables"`
	Secrets         struct{}        `json:"secrets"`
	Variables       rest.Null       `json:"memory_variables"`
	ProjectID       rest.Null       `json:"project_id"`
	TemplateID      rest.Null       `json:"template_id"`
	BaseTemplateID  rest.Null       `json:"base_template_id"`
	IdentityIDs     []string        `json:"identity_ids"`
	FilesAgents     []viewEntry     `json:"files_agents"`
	GroupIDs        []string        `json:"group_ids"`
}

// messageEntry is a message of an agent.
type messageEntry struct {
	Type              string               `json:"type"`
	ID                string               `json:"id"`
	Role              string               `json:"role"`
	Content           []letta.ContentPart  `json:"content"`
	Name              *string              `json:"name"`
	OTID              *string              `json:"otid"`
	SenderID          *string              `json:"sender_id"`
	BatchItemID       rest.Null            `json:"batch_item_id"`
	GroupID           *string              `json:"group_id"`
	Model             *string              `json:"model"`
	AgentID           string               `json:"agent_id"`
	ToolCalls         []letta.FunctionCall `json:"tool_calls"`
	ToolCallID        *string              `json:"tool_call_id"`
	ToolReturns       []returnEntry        `json:"tool_returns"`
	CreatedAt         time.Time            `json:"created_at"`
	Approve           *bool                `json:"approve"`
	ApprovalRequestID rest.Null            `json:"approval_request_id"`
	DenialReason      *string              `json:"denial_reason"`
	Approvals         []any                `json:"approvals"` // approvals, and returnEntry
}

// returnEntry is the result of a tool. Its response is a text in an envelope, or a list of texts and images.
type returnEntry struct {
	ToolCallID string   `json:"tool_call_id"`
	Status     string   `json:"status"`
	Stdout     []string `json:"stdout"`
	Stderr     []string `json:"stderr"`
	Response   any      `json:"func_response"`
}

// viewEntry is an entry in an agent's list of open files.
type viewEntry struct {
	ID             string    `json:"id"`
	AgentID        string    `json:"agent_id"`
	FileID         string    `json:"file_id"`
	SourceID       string    `json:"source_id"`
	FileName       string    `json:"file_name"`
	IsOpen         bool      `json:"is_open"`
	VisibleContent *string   `json:"visible_content"`
	LastAccessedAt time.Time `json:"last_accessed_at"`
}

// blockEntry is a block in a file.
type blockEntry struct {
	ID                  string          `json:"id"`
	Label               string          `json:"label"`
	Value               string          `json:"value"`
	Limit               int             `json:"limit"`
	Description         *string         `json:"description"`
	ReadOnly            bool            `json:"read_only"`
	Hidden              bool            `json:"hidden"`
	Metadata            json.RawMessage `json:"metadata"`
	IsTemplate          bool            `json:"is_template"`
	TemplateName        *string         `json:"template_name"`
	PreserveOnMigration bool            `json:"preserve_on_migration"`
}

// sourceEntry is a folder in a file.
type sourceEntry struct {
	ID              string          `json:"id"`
	Name            string          `json:"name"`
	Description     *string         `json:"description"`
	Instructions    *string         `json:"instructions"`
	Metadata        json.RawMessage `json:"metadata"`
	EmbeddingConfig any             `json:"embedding_config"`
}

// fileEntry is a file of a folder, with its text.
type fileEntry struct {
	ID               string    `json:"id"`
	SourceID         string    `json:"source_id"`
	Name             string    `json:"file_name"`
	OriginalName     string    `json:"original_file_name"`
	Path             rest.Null `json:"file_path"`
	MediaType        string    `json:"file_type"`
	SizeBytes        int64     `json:"file_size"`
	CreationDate     rest.Null `json:"file_creation_date"`
	LastModifiedDate rest.Null `json:"file_last_modified_date"`
	Status           string    `json:"processing_status"`
	ErrorMessage     *string   `json:"error_message"`
	TotalChunks      int       `json:"total_chunks"`
	ChunksEmbedded   int       `json:"chunks_embedded"`
	Content          *string   `json:"content"`
}

// toolEntry is a tool of an agent.
type toolEntry struct {
	ID                      string          `json:"id"`
	ToolType                string          `json:"tool_type"`
	Description             string          `json:"description"`
	SourceType              string          `json:"source_type"`
	Name                    string          `json:"name"`
	Tags                    []string        `json:"tags"`
	SourceCode              *string         `json:"source_code"`
	JSONSchema              json.RawMessage `json:"json_schema"`
	ArgsJSONSchema          json.RawMessage `json:"args_json_schema"`
	ReturnCharLimit         int             `json:"return_char_limit"`
	PipRequirements         json.RawMessage `json:"pip_requirements"`
	NPMRequirements         json.RawMessage `json:"npm_requirements"`
	DefaultRequiresApproval *bool           `json:"default_requires_approval"`
	CreatedByID             rest.Null       `json:"created_by_id"`
	LastUpdatedByID         rest.Null       `json:"last_updated_by_id"`
	Metadata                json.RawMessage `json:"metadata_"`
}
