package letta

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/rest"
)

// AgentState is an agent with its memory, tools and folders, in Letta's shape. Fields that Loci does not store are
// empty or null.
type AgentState struct {
	agent.Agent
	Memory                 CoreMemory             `json:"memory"`
	Blocks                 []Block                `json:"blocks"`
	Tools                  []Tool                 `json:"tools"`
	MadeFor                string                 `json:"made_for" doc:"loci or letta: whose clients."`
	ToolSet                *string                `json:"tool_set" doc:"The named set; null if the tools are none."`
	Sources                []Source               `json:"sources"`
	LLMConfig              LLMConfig              `json:"llm_config"`
	EmbeddingConfig        *files.EmbeddingConfig `json:"embedding_config"`
	ModelSettings          json.RawMessage        `json:"model_settings,omitempty"` // clients would take null for settings
	CompactionSettings     json.RawMessage        `json:"compaction_settings"`
	ResponseFormat         json.RawMessage        `json:"response_format"`
	ToolRules              json.RawMessage        `json:"tool_rules"`
	MessageBufferAutoclear bool                   `json:"message_buffer_autoclear"`
	EnableSleeptime        *bool                  `json:"enable_sleeptime"`
	RecallScope            string                 `json:"recall_scope" doc:"agent, user or conversation: see PATCH."`

	WorkingMemory string `json:"working_memory" doc:"automatic, if Loci updates it after each turn; else manual."`

	Flush    *agent.FlushSettings    `json:"flush" doc:"Silent turns before compactions; null without."`
	Handover *agent.HandoverSettings `json:"handover" doc:"Of conversations that end; null without."`
	Prompt   *agent.PromptSettings   `json:"prompt" doc:"How the agent's prompts are written; null: the defaults."`
	Skills   *agent.SkillSettings    `json:"skills" doc:"Which skills its prompts show; null: the defaults."`
	Recall   *agent.RecallSettings   `json:"recall" doc:"What is recalled unasked for a message; null: nothing."`
	Gateway  *agent.GatewaySettings  `json:"gateway" doc:"What the gateway does; null: the server's mode, no tools."`

	MessageIDs   []string `json:"message_ids" doc:"Of what the model sees: the system prompt and the newest 1,000 others."`
	MaxFilesOpen int      `json:"max_files_open" doc:"The agent's own limit, or its context window's."`
	ViewChars    int      `json:"per_file_view_window_char_limit" doc:"The agent's own limit, or its context window's."`

	OpenOnAttach bool `json:"open_on_attach" doc:"Whether files of attached folders open by themselves."`

	Identities  []Identity `json:"identities"`
	IdentityIDs []string   `json:"identity_ids"`
	Secrets     []any      `json:"secrets"`
	Environment []any      `json:"tool_exec_environment_variables"`

	PendingApproval *ApprovalRequest `json:"pending_approval" doc:"Of the default conversation."`

	ManagedGroup    rest.Null `json:"managed_group"`
	MultiAgentGroup rest.Null `json:"multi_agent_group"`
	ProjectID       rest.Null `json:"project_id"`
	TemplateID      rest.Null `json:"template_id"`
	BaseTemplateID  rest.Null `json:"base_template_id"`
	DeploymentID    rest.Null `json:"deployment_id"`
	EntityID        rest.Null `json:"entity_id"`
	CreatedByID     rest.Null `json:"created_by_id"`
	LastUpdatedByID rest.Null `json:"last_updated_by_id"`
}

// CoreMemory holds an agent's blocks and open files. The agent's model always sees them.
type CoreMemory struct {
	Blocks         []Block           `json:"blocks"`
	FileBlocks     []agent.FileBlock `json:"file_blocks"`
	AgentType      string            `json:"agent_type"`
	GitEnabled     bool              `json:"git_enabled"`
	PromptTemplate string            `json:"prompt_template"`
}

// LLMConfig describes the model that an agent uses, and how the model should answer. Loci does not call this endpoint:
// model_endpoint_type names the protocol that clients assume. If a setting is not set and Letta's clients do not
// declare it nullable, it is absent.
type LLMConfig struct {
	Handle         *string         `json:"handle"`
	Model          string          `json:"model"`
	EndpointType   string          `json:"model_endpoint_type"`
	ContextWindow  int             `json:"context_window" doc:"In tokens; 32768 is assumed if the model's is not known."`
	Temperature    *float64        `json:"temperature,omitempty"`
	MaxTokens      *int            `json:"max_tokens"`
	ParallelCalls  *bool           `json:"parallel_tool_calls"`
	Reasons        *bool           `json:"enable_reasoner,omitempty"`
	ReasonEffort   *string         `json:"reasoning_effort"`
	MaxThinking    *int            `json:"max_reasoning_tokens,omitempty"`
	Effort         *string         `json:"effort"`
	Verbosity      *string         `json:"verbosity"`
	Penalty        *float64        `json:"frequency_penalty"`
	Strict         *bool           `json:"strict,omitempty"`
	ResponseFormat json.RawMessage `json:"response_format"`
}

// Source is a folder in Letta's shape. Source is Letta's older name for a folder.
type Source struct {
	files.Folder
	VectorDBProvider string `json:"vector_db_provider"`
}

// SourceOf returns a folder in Letta's shape.
func SourceOf(f files.Folder) Source { return Source{Folder: f, VectorDBProvider: "native"} }

// CoreMemoryOf returns an agent's core memory in Letta's shape.
func CoreMemoryOf(a agent.Agent, m agent.CoreMemory) CoreMemory {
	return CoreMemory{Blocks: rest.Each(m.Blocks, BlockOf), FileBlocks: m.FileBlocks, AgentType: a.Type}
}

// rulesOf returns the rules of an agent's tools; an empty list if it has none, as in Letta.
func rulesOf(s agent.Settings) json.RawMessage {
	if s.ToolRules == nil {
		return json.RawMessage("[]")
	}
	return s.ToolRules
}

// StateOf returns an agent, with its relations and tools, in Letta's shape.
func StateOf(a agent.Agent, r agent.Relations, tools []Tool) AgentState {
	limits, memory, settings := a.Limits(), CoreMemoryOf(a, r.CoreMemory), a.Settings
	return AgentState{
		Agent: a, MadeFor: a.MadeFor(), Memory: memory, Blocks: memory.Blocks, Tools: tools,
		Sources:   rest.Each(r.Folders, SourceOf),
		LLMConfig: llmConfigOf(a), EmbeddingConfig: r.Embedding, MessageIDs: r.MessageIDs,
		ModelSettings: modelSettingsOf(a), CompactionSettings: settings.CompactionSettings,
		ResponseFormat: settings.ResponseFormat, ToolRules: rulesOf(settings), EnableSleeptime: settings.EnableSleeptime,
		MessageBufferAutoclear: settings.MessageBufferAutoclear != nil && *settings.MessageBufferAutoclear,
		MaxFilesOpen:           limits.MaxOpen, ViewChars: limits.ViewChars,
		OpenOnAttach:  !limits.OpensNone,
		RecallScope:   cmp.Or(settings.RecallScope, agent.ScopeAgent),
		WorkingMemory: cmp.Or(settings.WorkingMemory, agent.ManualMemory), Flush: settings.Flush,
		Handover:    settings.Handover,
		Prompt:      settings.Prompt,
		Skills:      settings.Skills,
		Recall:      settings.Recall,
		Gateway:     settings.Gateway,
		Identities:  rest.Each(r.Identities, IdentityOf),
		IdentityIDs: rest.Each(r.Identities, func(i agent.Identity) string { return i.ID }),
		Secrets:     []any{}, Environment: []any{},
	}
}

// PendingApprovalOf returns the calls that wait for the client, in Letta's shape.
func PendingApprovalOf(p loop.Pending) *ApprovalRequest {
	o := ItemOptions{Types: []string{approvalRequestMessage}}
	for _, item := range o.Items(p.Message) {
		if request, ok := item.value.(ApprovalRequest); ok {
			return &request
		}
	}
	return nil
}

func llmConfigOf(a agent.Agent) LLMConfig {
	m := a.ModelSettings()
	c := LLMConfig{Handle: a.Model, EndpointType: "openai", ContextWindow: a.AssumedWindow(), Temperature: m.Temperature,
		MaxTokens: m.MaxOutputTokens, ParallelCalls: m.ParallelCalls, Reasons: m.Reasons, MaxThinking: m.MaxThinking,
		Effort: m.Effort, Verbosity: m.Verbosity, Penalty: m.Penalty, Strict: m.Strict, ResponseFormat: m.ResponseFormat}
	if m.Reasoning != nil {
		c.ReasonEffort = m.Reasoning.Effort
	}
	if a.Model != nil {
		c.Model = (*a.Model)[strings.LastIndexByte(*a.Model, '/')+1:]
	}
	return c
}

// Included says which relations to return with listed agents.
type Included struct {
	Include []string `query:"include,explode" doc:"agent.blocks fills memory.file_blocks."`
	Legacy  []string `query:"include_relationships,explode" deprecated:"true"`
}

// FileBlocks reports whether the caller wants the texts of open files.
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
	StopReason   string   `query:"last_stop_reason" doc:"Of the agent's newest run that has ended."`
	IdentityFilters
}

// IdentityFilters narrow a list to items that have an identity.
type IdentityFilters struct {
	IdentityID     string   `query:"identity_id" doc:"The id of an identity."`
	IdentifierKeys []string `query:"identifier_keys,explode" doc:"Of identities; one of them is enough."`
}

// Filter returns the store's filter.
func (f AgentFilter) Filter() agent.Filter {
	return agent.Filter{Name: f.Name, Contains: f.QueryText, Tags: f.Tags, AllTags: f.MatchAllTags, Hidden: f.Hidden,
		Identity: f.IdentityID, IdentifierKeys: f.IdentifierKeys, StopReason: f.StopReason}
}

// Message is the answer of an operation that has no result.
type Message struct {
	Message string `json:"message"`
}
