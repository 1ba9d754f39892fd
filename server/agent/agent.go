// Package agent keeps agents and assembles what their model sees. It is where memories meet: it owns the agents, and reads the other
// memories through their stores.
package agent

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/block"
)

// Agent is an agent as the API shows it. The memory, tools and sources of it are read from the memories that keep them.
type Agent struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Type        string          `db:"agent_type" json:"agent_type"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	System      string          `db:"system" json:"system"`
	Tags        []string        `db:"tags" json:"tags"`
	Timezone    string          `db:"timezone" json:"timezone"`
	Model       *string         `db:"model" json:"model"`
	Embedding   *string         `db:"embedding" json:"embedding"`
	// WindowLimit, MaxFilesOpen and ViewChars are the operator's; nil follows the model, or the tier of its window.
	WindowLimit  *int      `db:"context_window_limit" json:"context_window_limit"`
	MaxFilesOpen *int      `db:"max_files_open" json:"-"`
	ViewChars    *int      `db:"per_file_view_window_char_limit" json:"-"`
	Hidden       bool      `db:"hidden" json:"hidden"`
	Settings     Settings  `db:"settings" json:"-"`
	CreatedAt    time.Time `db:"created_at" json:"created_at"`
	UpdatedAt    time.Time `db:"updated_at" json:"updated_at"`
}

// Zone is the agent's timezone; UTC where it is none that is known, for any text is stored.
func (a Agent) Zone() *time.Location {
	zone, err := time.LoadLocation(a.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Settings are what clients store with an agent and read back. Loci itself acts on none but the rules of tools, which it tells the model.
type Settings struct {
	ModelSettings          json.RawMessage `json:"model_settings,omitempty"`
	CompactionSettings     json.RawMessage `json:"compaction_settings,omitempty"`
	ResponseFormat         json.RawMessage `json:"response_format,omitempty"`
	ToolRules              json.RawMessage `json:"tool_rules,omitempty"`
	LLMConfig              json.RawMessage `json:"llm_config,omitempty"`
	MessageBufferAutoclear *bool           `json:"message_buffer_autoclear,omitempty"`
	EnableSleeptime        *bool           `json:"enable_sleeptime,omitempty"`
}

// New is what an agent is created from; nil and empty fields take their defaults.
type New struct {
	Name, Type, System, Timezone         string
	Description, Model, Embedding        *string
	Metadata                             json.RawMessage
	Tags                                 []string
	WindowLimit, MaxFilesOpen, ViewChars *int
	Hidden                               bool
	Settings                             Settings
	FolderIDs                            []string       // attached in the same transaction
	Messages                             []recall.Draft // of the default conversation, after its system prompt
	Blocks                               []block.New    // made for the agent
	BlockIDs                             []string       // attached to it
}

// Update changes what is set. A nil pointer leaves a field alone; the limits tell "leave alone" (not Set) from "back to the tier's
// default" (Set, Value nil). A non-nil slice replaces, an empty one clears.
type Update struct {
	Name, Description, System, Timezone, Model, Embedding *string
	Metadata                                              json.RawMessage
	Tags                                                  []string
	WindowLimit, MaxFilesOpen, ViewChars                  Limit
	Hidden                                                *bool
	Settings                                              Settings // fields that are not nil
	FolderIDs                                             []string
	BlockIDs                                              []string
}

// Limit is a number that can be left alone, set, or given back to its default.
type Limit struct {
	Set   bool
	Value *int
}

// Filter narrows a list of agents. Tags: any of them, or all.
type Filter struct {
	Name, Contains string
	Tags           []string
	AllTags        bool
	Hidden         bool // hidden agents too
	ByUpdate       bool // order by the last change instead of the creation
}

// FileBlock is an attached file as Letta's memory shows it: labelled folder/name, its value what the model sees of it.
type FileBlock struct {
	ID             string     `json:"id"` // block- and the file's own UUID
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

// Overview is what fills an agent's context window, in Letta's shape. The external memory's summary is the memory metadata; there is no file
// system of memory.
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
