// Package agent stores agents and assembles the prompts of their models. It owns the tables of agents and of handed-out
// prompts, and reads the memories through their stores.
//
// Each file uses those that are named before it:
//   - agents, and the store: customtool.go flushsettings.go gatewaysettings.go handoversettings.go format.go
//     promptsettings.go recallsettings.go skillsettings.go agent.go
//     fields.go promptmeans.go store.go modelfamily.go model.go limits.go lettatype.go toolsets.go
//   - prompts: prompt.go policy.go queries.go request.go filedirectory.go corememory.go skill.go systemprompt.go
//     usage.go calibration.go recallednotes.go assemble.go recallnote.go room.go branch.go
//   - what keeps prompts short: flushes.go flushtools.go policylines.go prune.go compact.go
//   - policies, conversations and identities: policyover.go policychange.go conversationidentity.go conversation.go
//     identity.go
//   - agents that change: rulenames.go toolstore.go definition.go create.go update.go portable.go
//   - work between the turns: flushend.go stats.go growth.go windowjob.go idlejob.go promptlog.go flush.go
//     workingjob.go jobs.go
//   - what else is asked of an agent: fit.go fittedview.go memorycompress.go mixedusers.go overview.go policypreview.go
package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// Agent is an agent as the API shows it, except its memory, tools and sources; other stores hold these.
type Agent struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Type        string          `db:"agent_type" json:"agent_type"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	System      string          `db:"system" json:"system"` // empty: the default instructions
	Tags        []string        `db:"tags" json:"tags"`
	Timezone    string          `db:"timezone" json:"timezone"`
	Model       *string         `db:"model" json:"model"`
	Embedding   *string         `db:"embedding" json:"embedding"`
	// WindowLimit, MaxFilesOpen and ViewChars are set by the operator; nil uses the values of the model and of its window.
	WindowLimit  *int      `db:"context_window_limit" json:"context_window_limit"`
	MaxFilesOpen *int      `db:"max_files_open" json:"-"`
	ViewChars    *int      `db:"per_file_view_window_char_limit" json:"-"`
	Hidden       bool      `db:"hidden" json:"hidden"`
	Settings     Settings  `db:"settings" json:"-"`
	CreatedAt    time.Time `db:"created_at" json:"created_at"`
	UpdatedAt    time.Time `db:"updated_at" json:"updated_at"`

	SystemChangedAt time.Time `db:"system_changed_at" json:"-"` // when an update last changed what the system prompt shows
	LastRun

	Depth    int            `db:"depth" json:"-"`          // 0 for an agent that is no sub-agent
	Attached []AttachedTool `db:"attached_tools" json:"-"` // the tools that the agent's programs run

	Subagents []SubagentName `db:"subagents" json:"-"` // definitions of sub-agents

	HasSkills bool `db:"has_skills" json:"-"` // a folder of skills is attached

	// InConversation are the compaction settings of the conversation that the agent was asked for. They change the
	// agent's.
	InConversation json.RawMessage `db:"-" json:"-"`

	InForce policy.Policy `db:"-" json:"-"` // descriptions of tools state its bounds; empty if none is known
}

// Zone returns the agent's timezone; UTC if the stored name is unknown.
func (a Agent) Zone() *time.Location {
	zone, err := time.LoadLocation(a.Timezone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// LastRun is the outcome of an agent's newest finished run; its fields are nil if there is none.
type LastRun struct {
	Completion *time.Time `db:"last_run_completion" json:"last_run_completion"`
	DurationMS *int64     `db:"last_run_duration_ms" json:"last_run_duration_ms"`
	StopReason *string    `db:"last_stop_reason" json:"last_stop_reason"`
}

// Settings are stored by clients with an agent. Loci shows the tool rules to the model, and hands out the model
// settings and the response format with a prompt. It also uses the tools, the compaction settings, the recall scope and
// OpenOnAttach. Clients read back all others.
type Settings struct {
	Tools                  []string        `json:"tools,omitzero"`           // names; nil: every tool
	MadeFor                string          `json:"made_for,omitempty"`       // ForLoci or ForLetta; empty: ForLoci
	OpenOnAttach           *bool           `json:"open_on_attach,omitempty"` // nil: true
	ModelSettings          json.RawMessage `json:"model_settings,omitempty"` // fields of the type ModelSettings
	CompactionSettings     json.RawMessage `json:"compaction_settings,omitempty"`
	ResponseFormat         json.RawMessage `json:"response_format,omitempty"`
	ToolRules              json.RawMessage `json:"tool_rules,omitempty"`
	MessageBufferAutoclear *bool           `json:"message_buffer_autoclear,omitempty"`
	EnableSleeptime        *bool           `json:"enable_sleeptime,omitempty"`
	RecallScope            string          `json:"recall_scope,omitempty"`   // empty: ScopeAgent
	WorkingMemory          string          `json:"working_memory,omitempty"` // empty: ManualMemory
	Flush                  *FlushSettings  `json:"flush,omitempty"`          // nil: FlushOff

	Handover *HandoverSettings `json:"handover,omitempty"` // nil: HandoverOff
	Prompt   *PromptSettings   `json:"prompt,omitempty"`   // nil: the defaults
	Skills   *SkillSettings    `json:"skills,omitempty"`   // nil: the defaults
	Recall   *RecallSettings   `json:"recall,omitempty"`   // nil: nothing is recalled unasked
	Gateway  *GatewaySettings  `json:"gateway,omitempty"`  // nil: the server's mode, and no tools
}

// These say what an agent's tools search and read: the memories of all its users, the memories of the user with whom
// the conversation of the call is and of nobody, or of these only what the conversation itself holds.
const (
	ScopeAgent        = "agent"
	ScopeUser         = "user"
	ScopeConversation = "conversation"
)

// DefaultScope returns the recall scope of a new agent that is made for ForLoci or ForLetta. Letta's programs know no
// users, and keep "" as ScopeAgent.
func DefaultScope(madeFor string) string {
	if madeFor == ForLetta {
		return ""
	}
	return ScopeUser
}

// Users returns whose memories the agent reads in a conversation.
func (a Agent) Users(c recall.Conversation) db.UserScope {
	if cmp.Or(a.Settings.RecallScope, ScopeAgent) == ScopeAgent {
		return db.AllUsers()
	}
	return db.OfUser(c.UserKey)
}

// New says how to create an agent. Nil and empty fields use defaults.
type New struct {
	Name, Type, System, Timezone         string
	Description, Model, Embedding        *string
	Metadata                             json.RawMessage
	Tags                                 []string
	WindowLimit, MaxFilesOpen, ViewChars *int
	Hidden                               bool
	Depth                                int // depth of a sub-agent, from 1; 0 for an agent that is no sub-agent
	Settings                             Settings
	RuleTools                            []string       // definitions that the rules name; they must still exist
	FolderIDs                            []string       // attached in the same transaction
	Messages                             []recall.Draft // messages of the default conversation, after the system prompt
	Blocks                               []block.New    // created for the agent
	BlockIDs                             []string       // attached to the agent
	ToolIDs                              []string       // ids of definitions
	IdentityIDs                          []string
}

// Update says what to change. A nil pointer or slice leaves its field unchanged; any other slice replaces it. A Limit
// that is not Set leaves its limit unchanged; one that is Set to nil resets it to the default.
type Update struct {
	Name, Description, System, Timezone, Model, Embedding *string
	Metadata                                              json.RawMessage
	Tags                                                  []string
	WindowLimit, MaxFilesOpen, ViewChars                  Limit
	Hidden                                                *bool
	Settings                                              Settings        // nil fields stay unchanged
	Unset                                                 []string        // names of settings to reset to their defaults
	ModelSettings                                         json.RawMessage // an object; null unsets a field
	RuleTools                                             []string        // definitions that the rules name
	FolderIDs                                             []string
	BlockIDs                                              []string
	ToolIDs                                               []string // ids of definitions
	IdentityIDs                                           []string
	LastRun                                               LastRun // nil fields stay unchanged
}

// isShown reports whether an update may change what the system prompt shows. Other updates leave the prompt's bytes
// unchanged, so that a provider's cache stays valid.
func (u Update) isShown() bool {
	inPrompt := func(name string) bool { return name == "tools" || name == "tool_rules" || name == "skills" }
	return u.System != nil || u.Timezone != nil || u.MaxFilesOpen.Set || u.ViewChars.Set || u.FolderIDs != nil ||
		u.BlockIDs != nil || u.ToolIDs != nil || u.Settings.Tools != nil || u.Settings.MadeFor != "" ||
		u.Settings.ToolRules != nil || u.Settings.Skills != nil || slices.ContainsFunc(u.Unset, inPrompt)
}

// Limit changes a number or resets it to its default.
type Limit struct {
	Set   bool
	Value *int
}

// Filter narrows a list of agents.
type Filter struct {
	Name     string // the exact name
	Contains string // a part of the name; case is ignored
	Tags     []string
	AllTags  bool   // the agent must have all Tags, not only one
	Hidden   bool   // include hidden agents
	Identity string // id of an identity that the agent has

	IdentifierKeys []string // keys of identities; the agent has one of these. Nil selects all

	StopReason string // of the newest finished run
	Order      string // OrderByUpdate or OrderByRun; empty: by creation
}

// The orders of a list of agents, in the form of db.Page.Order. Agents that never ran count as the oldest.
const (
	OrderByUpdate = "updated_at, key"
	OrderByRun    = "coalesce(last_run_completion,'-infinity'), key"
)

// FileBlock shows an attached file as Letta shows it in an agent's memory. Its label is folder/name, and its value is
// the model's view of the file.
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

// visible returns how many messages a conversation has from the first visible one on, not counting system prompts.
func visible(c recall.Conversation) int {
	n := c.Messages - c.FirstVisible + 1
	for _, position := range c.Prompts {
		if position >= c.FirstVisible {
			n--
		}
	}
	return max(n, 0)
}

// tooLong reports whether a conversation has too many messages in view to send them.
func tooLong(c recall.Conversation) bool { return visible(c) > plan.MaxMessages }

// compactionSettings returns the agent's settings after the changes of its conversation, and of a JSON object that may
// be nil.
func (a Agent) compactionSettings(over []byte) (plan.Settings, error) {
	settings, err := plan.ParseSettings(a.Settings.CompactionSettings, plan.Defaults())
	if err != nil { // they were stored before settings were checked
		settings = plan.Defaults()
	}
	if here, err := plan.ParseSettings(a.InConversation, settings); err == nil {
		settings = here
	}
	changed, err := plan.ParseSettings(over, settings)
	if err != nil {
		return changed, err
	}
	return changed, policy.Check(policyIn(over))
}

// policyIn returns the policy in a JSON object of compaction settings; nil if there is none.
func policyIn(settings []byte) json.RawMessage {
	var parsed struct {
		Policy json.RawMessage `json:"policy"`
	}
	if json.Unmarshal(settings, &parsed) != nil {
		return nil
	}
	return parsed.Policy
}

// mergeCompaction returns an agent's settings after a change, in the form to store; nil if there is no change.
func mergeCompaction(stored, change json.RawMessage) (json.RawMessage, error) {
	if change == nil {
		return nil, nil
	}
	merged, err := Agent{Settings: Settings{CompactionSettings: stored}}.compactionSettings(change)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

// check returns ErrInvalid for Loci's own settings that break a rule.
func (s Settings) check() error {
	if s.Flush != nil {
		if err := s.Flush.Check(); err != nil {
			return err
		}
	}
	if s.Handover != nil {
		if err := s.Handover.check(); err != nil {
			return err
		}
	}
	if s.Skills != nil {
		if err := s.Skills.check(); err != nil {
			return err
		}
	}
	if s.Recall != nil {
		if err := s.Recall.Check(); err != nil {
			return err
		}
	}
	if s.Gateway != nil {
		if err := s.Gateway.check(); err != nil {
			return err
		}
	}
	if s.Prompt != nil {
		return s.Prompt.check()
	}
	return nil
}

// HandsOver reports whether the agent's conversations are handed over at this end (OnReset or OnArchive), and whether
// the updates then wait for an operator.
func (a Agent) HandsOver(at string) (does, pending bool) {
	h := a.Settings.Handover
	if h == nil || h.Mode == HandoverOff || h.Mode == "" {
		return false, false
	}
	return h.On == nil || slices.Contains(h.On, at), h.Mode == HandoverPending
}

// GatewayMode returns the mode of the gateway's requests for the agent that name none; empty if the agent has none.
func (a Agent) GatewayMode() string {
	if a.Settings.Gateway == nil {
		return ""
	}
	return a.Settings.Gateway.Mode
}

// QueryResult is the name of the tool that computes on tool results of which the model sees only a part.
const QueryResult = "query_result"
