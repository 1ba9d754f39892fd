// Package agent stores agents and assembles the prompts of their models. It owns the table of agents and that of the
// prompts handed out, and reads the memories through their stores.
package agent

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/block"
)

// Agent is an agent as the API shows it, without its memory, tools and sources, which other stores hold.
type Agent struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Type        string          `db:"agent_type" json:"agent_type"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	System      string          `db:"system" json:"system"` // empty for the default instructions
	Tags        []string        `db:"tags" json:"tags"`
	Timezone    string          `db:"timezone" json:"timezone"`
	Model       *string         `db:"model" json:"model"`
	Embedding   *string         `db:"embedding" json:"embedding"`
	// WindowLimit, MaxFilesOpen and ViewChars are set by the operator; nil means those of the model and of its window.
	WindowLimit  *int      `db:"context_window_limit" json:"context_window_limit"`
	MaxFilesOpen *int      `db:"max_files_open" json:"-"`
	ViewChars    *int      `db:"per_file_view_window_char_limit" json:"-"`
	Hidden       bool      `db:"hidden" json:"hidden"`
	Settings     Settings  `db:"settings" json:"-"`
	CreatedAt    time.Time `db:"created_at" json:"created_at"`
	UpdatedAt    time.Time `db:"updated_at" json:"updated_at"`
}

// Zone returns the agent's timezone; UTC if the stored name is unknown.
func (a Agent) Zone() *time.Location {
	zone, err := time.LoadLocation(a.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Settings are what clients store with an agent and read back. Loci itself uses the tools, the compaction
// settings and the tool rules, which it shows to the model.
type Settings struct {
	Tools                  []string        `json:"tools,omitzero"`           // names; nil is every tool
	OpenOnAttach           *bool           `json:"open_on_attach,omitempty"` // nil is true
	ModelSettings          json.RawMessage `json:"model_settings,omitempty"`
	CompactionSettings     json.RawMessage `json:"compaction_settings,omitempty"`
	ResponseFormat         json.RawMessage `json:"response_format,omitempty"`
	ToolRules              json.RawMessage `json:"tool_rules,omitempty"`
	LLMConfig              json.RawMessage `json:"llm_config,omitempty"`
	MessageBufferAutoclear *bool           `json:"message_buffer_autoclear,omitempty"`
	EnableSleeptime        *bool           `json:"enable_sleeptime,omitempty"`
	RecallScope            string          `json:"recall_scope,omitempty"` // empty is ScopeAgent
}

// What an agent's tools find and read of its conversations: all, or only the one in which they are called.
const (
	ScopeAgent        = "agent"
	ScopeConversation = "conversation"
)

// EveryTool in a list of tools stands for every tool, those of later versions too.
const EveryTool = "all"

// HasTool reports whether an agent has a tool, or would have it with a folder.
func (a Agent) HasTool(name string) bool {
	t := a.Settings.Tools
	return t == nil || slices.Contains(t, EveryTool) || slices.Contains(t, name)
}

// New says how to create an agent; nil and empty fields have defaults.
type New struct {
	Name, Type, System, Timezone         string
	Description, Model, Embedding        *string
	Metadata                             json.RawMessage
	Tags                                 []string
	WindowLimit, MaxFilesOpen, ViewChars *int
	Hidden                               bool
	Settings                             Settings
	FolderIDs                            []string       // attached in the same transaction
	Messages                             []recall.Draft // of the default conversation, after the system prompt
	Blocks                               []block.New    // created for the agent
	BlockIDs                             []string       // attached to the agent
}

// Update says what to change. A nil pointer or slice leaves a field unchanged; a slice that is not nil replaces it. A
// Limit that is not Set leaves a limit unchanged, and one that is Set to nil resets it to its default.
type Update struct {
	Name, Description, System, Timezone, Model, Embedding *string
	Metadata                                              json.RawMessage
	Tags                                                  []string
	WindowLimit, MaxFilesOpen, ViewChars                  Limit
	Hidden                                                *bool
	Settings                                              Settings // nil fields stay unchanged
	FolderIDs                                             []string
	BlockIDs                                              []string
}

// Limit changes a number or resets it to its default.
type Limit struct {
	Set   bool
	Value *int
}

// Filter narrows a list of agents.
type Filter struct {
	Name     string // exact
	Contains string // a part of the name, in any case
	Tags     []string
	AllTags  bool // the agent has all Tags; else any of them is enough
	Hidden   bool // include hidden agents
	ByUpdate bool // order by the last change; else by creation
}

// FileBlock is an attached file as Letta shows it in an agent's memory: its label is folder/name, its value what the
// model sees of it.
type FileBlock struct {
	ID             string     `json:"id"` // block- and the file's UUID
	Label          string     `json:"label"`
	Value          string     `json:"value"`
	Limit          int        `json:"limit"`
	ReadOnly       bool       `json:"read_only"`
	Description    *string    `json:"description"`
	FileID         string     `json:"file_id"`
	SourceID       string     `json:"source_id"`
	IsOpen         bool       `json:"is_open"`
	LastAccessedAt *time.Time `json:"last_accessed_at"`
}

// Overview says what fills an agent's context window, in Letta's shape. External is the memory metadata;
// Filesystem is always nil.
type Overview struct {
	WindowMax            int     `json:"context_window_size_max"` // 0: the model's window is unknown
	WindowCurrent        int     `json:"context_window_size_current"`
	NumMessages          int     `json:"num_messages"`
	NumArchivalMemory    int     `json:"num_archival_memory"`
	NumRecallMemory      int     `json:"num_recall_memory"`
	TokensExternal       int     `json:"num_tokens_external_memory_summary"`
	External             string  `json:"external_memory_summary"`
	TokensSystem         int     `json:"num_tokens_system"`
	SystemPrompt         string  `json:"system_prompt"`
	TokensCoreMemory     int     `json:"num_tokens_core_memory"`
	CoreMemory           string  `json:"core_memory"`
	TokensFilesystem     int     `json:"num_tokens_memory_filesystem"`
	Filesystem           *string `json:"memory_filesystem"`
	TokensToolRules      int     `json:"num_tokens_tool_usage_rules"`
	ToolRules            *string `json:"tool_usage_rules"`
	TokensDirectories    int     `json:"num_tokens_directories"`
	Directories          *string `json:"directories"`
	TokensSummaryMemory  int     `json:"num_tokens_summary_memory"`
	SummaryMemory        *string `json:"summary_memory"`
	TokensFunctions      int     `json:"num_tokens_functions_definitions"`
	FunctionsDefinitions []any   `json:"functions_definitions"`
	TokensMessages       int     `json:"num_tokens_messages"`
	Messages             []any   `json:"messages"`
}
