package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
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

func sourceOf(f files.Folder) Source { return Source{Folder: f, VectorDBProvider: "native"} }

func sourcesOf(folders []files.Folder) []Source {
	sources := make([]Source, len(folders))
	for i, f := range folders {
		sources[i] = sourceOf(f)
	}
	return sources
}

// state is an agent with all its relations; withFiles fills the texts of its open files too.
func (s *Server) state(ctx context.Context, org db.Org, a agent.Agent, withFiles bool) (AgentState, error) {
	folders, err := s.Files.AgentFolders(ctx, org, a.ID, db.Page{Ascending: true})
	if err != nil {
		return AgentState{}, err
	}
	memory, err := s.memory(ctx, org, a, withFiles && len(folders) > 0)
	if err != nil {
		return AgentState{}, err
	}
	conversation, err := s.Recall.Conversation(ctx, org, a.ID, recall.DefaultConversation)
	if err != nil {
		return AgentState{}, err
	}
	visible, err := s.Recall.VisibleIDs(ctx, org, conversation)
	if err != nil {
		return AgentState{}, err
	}
	limits := a.Limits()
	return AgentState{
		Agent: a, Memory: memory, Blocks: memory.Blocks, Tools: s.toolsOf(len(folders) > 0), Sources: sourcesOf(folders),
		LLMConfig: llmConfigOf(a), EmbeddingConfig: s.embeddingConfig(a),
		ModelSettings: a.Settings.ModelSettings, CompactionSettings: a.Settings.CompactionSettings,
		ResponseFormat: a.Settings.ResponseFormat, ToolRules: a.Settings.ToolRules, MessageIDs: visible[conversation.Key],
		MessageBufferAutoclear: a.Settings.MessageBufferAutoclear != nil && *a.Settings.MessageBufferAutoclear, EnableSleeptime: a.Settings.EnableSleeptime,
		MaxFilesOpen: limits.MaxOpen, ViewChars: limits.ViewChars,
		Identities: []any{}, IdentityIDs: []string{}, Secrets: []any{}, Environment: []any{},
	}, nil
}

func (s *Server) memory(ctx context.Context, org db.Org, a agent.Agent, withFiles bool) (CoreMemory, error) {
	blocks, err := s.Blocks.OfAgent(ctx, org, a.ID)
	m := CoreMemory{Blocks: blocksOf(blocks), FileBlocks: []agent.FileBlock{}, AgentType: a.Type}
	if err != nil || !withFiles {
		return m, err
	}
	m.FileBlocks, err = s.Agents.FileBlocks(ctx, org, a)
	return m, err
}

func llmConfigOf(a agent.Agent) LLMConfig {
	c := LLMConfig{Handle: a.Model, EndpointType: "openai", ContextWindow: a.Window()}
	if a.Model != nil {
		c.Model = (*a.Model)[strings.LastIndexByte(*a.Model, '/')+1:]
	}
	return c
}

// embeddingConfig describes what an agent that names an embedding model is served with; nil for one that names none.
func (s *Server) embeddingConfig(a agent.Agent) *files.EmbeddingConfig {
	if a.Embedding == nil {
		return nil
	}
	c := s.Files.Embedding(files.DefaultChunkTokens)
	return &c
}
