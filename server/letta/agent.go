package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/rest"
)

// AgentState is an agent with everything that belongs to it, in Letta's shape. What this version does not keep is empty or null.
type AgentState struct {
	agent.Agent
	Memory                 CoreMemory             `json:"memory"`
	Blocks                 []Block                `json:"blocks"`
	Tools                  []Tool                 `json:"tools"`
	Sources                []Source               `json:"sources"`
	LLMConfig              LLMConfig              `json:"llm_config"`
	EmbeddingConfig        *files.EmbeddingConfig `json:"embedding_config"`
	ModelSettings          json.RawMessage        `json:"model_settings,omitempty"` // clients take null for settings of their own
	CompactionSettings     json.RawMessage        `json:"compaction_settings"`
	ResponseFormat         json.RawMessage        `json:"response_format"`
	ToolRules              json.RawMessage        `json:"tool_rules"`
	MessageIDs             []string               `json:"message_ids" doc:"What the model sees of the default conversation: the system prompt, and the newest 1,000 of the other messages, oldest first."`
	MessageBufferAutoclear bool                   `json:"message_buffer_autoclear"`
	EnableSleeptime        *bool                  `json:"enable_sleeptime"`
	MaxFilesOpen           int                    `json:"max_files_open" doc:"In effect: the agent's own, or what its context window allows."`
	ViewChars              int                    `json:"per_file_view_window_char_limit" doc:"In effect: the agent's own, or what its context window allows."`

	Identities  []any    `json:"identities"`
	IdentityIDs []string `json:"identity_ids"`
	Secrets     []any    `json:"secrets"`
	Environment []any    `json:"tool_exec_environment_variables"`

	ManagedGroup      rest.Null `json:"managed_group"`
	MultiAgentGroup   rest.Null `json:"multi_agent_group"`
	PendingApproval   rest.Null `json:"pending_approval"`
	LastRunCompletion rest.Null `json:"last_run_completion"`
	LastRunDurationMS rest.Null `json:"last_run_duration_ms"`
	LastStopReason    rest.Null `json:"last_stop_reason"`
	ProjectID         rest.Null `json:"project_id"`
	TemplateID        rest.Null `json:"template_id"`
	BaseTemplateID    rest.Null `json:"base_template_id"`
	DeploymentID      rest.Null `json:"deployment_id"`
	EntityID          rest.Null `json:"entity_id"`
	CreatedByID       rest.Null `json:"created_by_id"`
	LastUpdatedByID   rest.Null `json:"last_updated_by_id"`
}

// CoreMemory is what an agent always sees beside its instructions.
type CoreMemory struct {
	Blocks         []Block           `json:"blocks"`
	FileBlocks     []agent.FileBlock `json:"file_blocks"`
	AgentType      string            `json:"agent_type"`
	GitEnabled     bool              `json:"git_enabled"`
	PromptTemplate string            `json:"prompt_template"`
}

// LLMConfig says which model an agent is for. Loci calls none: the endpoint's type is the protocol that clients take for granted.
type LLMConfig struct {
	Handle        *string `json:"handle"`
	Model         string  `json:"model"`
	EndpointType  string  `json:"model_endpoint_type"`
	ContextWindow int     `json:"context_window" doc:"In tokens; 0 if the model's is not known."`
}

// Source is a folder, as it is attached to agents.
type Source struct {
	files.Folder
	VectorDBProvider string `json:"vector_db_provider"`
}

func SourceOf(f files.Folder) Source { return Source{Folder: f, VectorDBProvider: "native"} }

func SourcesOf(folders []files.Folder) []Source {
	FilterByType := make([]Source, len(folders))
	for i, f := range folders {
		FilterByType[i] = SourceOf(f)
	}
	return FilterByType
}

// Relations are what belongs to an agent and is kept elsewhere.
type Relations struct {
	Memory     CoreMemory
	Tools      []Tool
	Folders    []files.Folder
	MessageIDs []string               // that the model sees of the default conversation
	Embedding  *files.EmbeddingConfig // nil for an agent that names no embedding model
}

// StateOf shows an agent.
func StateOf(a agent.Agent, r Relations) AgentState {
	limits := a.Limits()
	return AgentState{
		Agent: a, Memory: r.Memory, Blocks: r.Memory.Blocks, Tools: r.Tools, Sources: SourcesOf(r.Folders), LLMConfig: llmConfigOf(a),
		EmbeddingConfig: r.Embedding, ModelSettings: a.Settings.ModelSettings, CompactionSettings: a.Settings.CompactionSettings,
		ResponseFormat: a.Settings.ResponseFormat, ToolRules: a.Settings.ToolRules, MessageIDs: r.MessageIDs,
		MessageBufferAutoclear: a.Settings.MessageBufferAutoclear != nil && *a.Settings.MessageBufferAutoclear,
		EnableSleeptime:        a.Settings.EnableSleeptime, MaxFilesOpen: limits.MaxOpen, ViewChars: limits.ViewChars,
		Identities: []any{}, IdentityIDs: []string{}, Secrets: []any{}, Environment: []any{},
	}
}

func llmConfigOf(a agent.Agent) LLMConfig {
	c := LLMConfig{Handle: a.Model, EndpointType: "openai", ContextWindow: a.Window()}
	if a.Model != nil {
		c.Model = (*a.Model)[strings.LastIndexByte(*a.Model, '/')+1:]
	}
	return c
}

// Included are the relations that a caller of a list asks for beside the agents themselves.
type Included struct {
	Include []string `query:"include,explode" doc:"agent.blocks fills memory.file_blocks; everything else is always there."`
	Legacy  []string `query:"include_relationships,explode" deprecated:"true"`
}

func (i Included) FileBlocks() bool {
	return slices.Contains(i.Include, "agent.blocks") || slices.Contains(i.Legacy, "memory")
}

// AgentFilter narrows a list of agents.
type AgentFilter struct {
	Name         string   `query:"name" doc:"The exact name."`
	QueryText    string   `query:"query_text" doc:"Part of the name, in any case."`
	Tags         []string `query:"tags,explode"`
	MatchAllTags bool     `query:"match_all_tags" doc:"All of the tags, not any."`
	Hidden       bool     `query:"show_hidden_agents"`
}

func (f AgentFilter) Filter() agent.Filter {
	return agent.Filter{Name: f.Name, Contains: f.QueryText, Tags: f.Tags, AllTags: f.MatchAllTags, Hidden: f.Hidden}
}

// Message is the answer to what leaves nothing to show.
type Message struct {
	Message string `json:"message"`
}
