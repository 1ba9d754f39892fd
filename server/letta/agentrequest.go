package letta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// AgentFields are the fields that a caller may set when it creates or changes an agent. Null resets the three limits
// and the set of tools to their defaults, and leaves any other field unchanged.
type AgentFields struct {
	Name          rest.Opt[string]          `json:"name,omitzero" doc:"Two random words if an agent is created without."`
	Description   rest.Opt[string]          `json:"description,omitzero"`
	Metadata      rest.Opt[rest.Object]     `json:"metadata,omitzero"`
	System        rest.Opt[string]          `json:"system,omitzero" doc:"The base instructions; empty for the default."`
	Tags          rest.Opt[[]string]        `json:"tags,omitzero"`
	Timezone      rest.Opt[string]          `json:"timezone,omitzero" doc:"An IANA name; UTC if absent."`
	Model         rest.Opt[string]          `json:"model,omitzero" doc:"provider/model"`
	Embedding     rest.Opt[string]          `json:"embedding,omitzero"`
	WindowLimit   rest.Opt[int]             `json:"context_window_limit,omitzero" doc:"In tokens; null, 0: the model's."`
	Hidden        rest.Opt[bool]            `json:"hidden,omitzero"`
	FolderIDs     rest.Opt[[]string]        `json:"folder_ids,omitzero"`
	SourceIDs     rest.Opt[[]string]        `json:"source_ids,omitzero" deprecated:"true"`
	BlockIDs      rest.Opt[[]string]        `json:"block_ids,omitzero" doc:"All blocks of the agent's core memory."`
	IdentityIDs   rest.Opt[[]string]        `json:"identity_ids,omitzero" doc:"All identities of the agent."`
	ModelSettings rest.Opt[ModelSettings]   `json:"model_settings,omitzero" doc:"A PATCH changes those that it has."`
	Response      rest.Opt[rest.Object]     `json:"response_format,omitzero"`
	ToolRules     rest.Opt[[]ToolRule]      `json:"tool_rules,omitzero"`
	LLMConfig     rest.Opt[LLMConfigFields] `json:"llm_config,omitzero" deprecated:"true"`
	OfModel
	Autoclear    rest.Opt[bool]     `json:"message_buffer_autoclear,omitzero"`
	Sleeptime    rest.Opt[bool]     `json:"enable_sleeptime,omitzero"`
	RecallScope  rest.Opt[string]   `json:"recall_scope,omitzero" enum:"agent,user,conversation" doc:"What it recalls."`
	Working      rest.Opt[string]   `json:"working_memory,omitzero" enum:"manual,automatic" doc:"Who keeps it current."`
	MadeFor      rest.Opt[string]   `json:"made_for,omitzero" enum:"loci,letta" doc:"Whose clients."`
	ToolSet      rest.Opt[string]   `json:"tool_set,omitzero" doc:"default, small, standard or all."`
	Tools        rest.Opt[[]string] `json:"tools,omitzero" doc:"Names of tools; file tools show with a folder."`
	ToolIDs      rest.Opt[[]string] `json:"tool_ids,omitzero" doc:"Ids of tools, as tools names them."`
	IncludeBase  rest.Opt[bool]     `json:"include_base_tools,omitzero" doc:"Whether Letta's default tools join."`
	IncludeRules rest.Opt[bool]     `json:"include_base_tool_rules,omitzero" doc:"Whether base tools bring rules."`
	OpenOnAttach rest.Opt[bool]     `json:"open_on_attach,omitzero" doc:"Whether folders open files; else true."`
	Unserved

	Compaction rest.Opt[CompactionSettings]  `json:"compaction_settings,omitzero"`
	Flush      rest.Opt[agent.FlushSettings] `json:"flush,omitzero" doc:"Silent turns before compactions."`

	Handover rest.Opt[agent.HandoverSettings] `json:"handover,omitzero" doc:"Of conversations that end."`
	Prompt   rest.Opt[agent.PromptSettings]   `json:"prompt,omitzero" doc:"How the agent's prompts are written."`
	Skills   rest.Opt[agent.SkillSettings]    `json:"skills,omitzero" doc:"Which skills its prompts show."`
	Recall   rest.Opt[agent.RecallSettings]   `json:"recall,omitzero" doc:"What is recalled unasked for a message."`
	Gateway  rest.Opt[agent.GatewaySettings]  `json:"gateway,omitzero" doc:"What the gateway does for it."`

	// Null means the limit that follows from the context window.
	MaxFilesOpen rest.Opt[int] `json:"max_files_open,omitzero" doc:"1 to 1,000 files."`
	ViewChars    rest.Opt[int] `json:"per_file_view_window_char_limit,omitzero" doc:"100 to 10,000,000 for each file."`
}

// Unserved are fields of Letta's that Loci does not store. Those that change what an agent is are refused unless they
// are empty; of the others a warning says that they are left out.
type Unserved struct {
	MessageIDs    rest.Opt[[]string]       `json:"message_ids,omitzero" deprecated:"true"`
	Secrets       rest.Opt[map[string]any] `json:"secrets,omitzero" deprecated:"true"`
	Environment   rest.Opt[map[string]any] `json:"tool_exec_environment_variables,omitzero" deprecated:"true"`
	FromTemplate  any                      `json:"from_template,omitempty" deprecated:"true"`
	Template      any                      `json:"template,omitempty" deprecated:"true"`
	TemplateID    any                      `json:"template_id,omitempty" deprecated:"true"`
	BaseTemplate  any                      `json:"base_template_id,omitempty" deprecated:"true"`
	Deployment    any                      `json:"deployment_id,omitempty" deprecated:"true"`
	Entity        any                      `json:"entity_id,omitempty" deprecated:"true"`
	Variables     any                      `json:"memory_variables,omitempty" deprecated:"true"`
	MultiAgent    any                      `json:"include_multi_agent_tools,omitempty" deprecated:"true"`
	Project       any                      `json:"project,omitempty" deprecated:"true" doc:"Left out."`
	ProjectID     any                      `json:"project_id,omitempty" deprecated:"true"`
	DefaultSource any                      `json:"include_default_source,omitempty" deprecated:"true" doc:"Left out."`
}

const noTemplates = "this server has no templates; leave it out, and send the agent's own blocks, tools and settings"

// check refuses fields without which an agent would be another one.
func (u Unserved) check() error {
	for _, field := range []struct {
		name string
		size int
		why  string
	}{
		{"message_ids", len(u.MessageIDs.Value),
			"what was said is never rewritten, and what the model sees follows from it; leave the list empty"},
		{"from_template", sizeOf(u.FromTemplate), noTemplates},
		{"template", sizeOf(u.Template), noTemplates},
		{"template_id", sizeOf(u.TemplateID), noTemplates},
		{"base_template_id", sizeOf(u.BaseTemplate), noTemplates},
		{"deployment_id", sizeOf(u.Deployment), noTemplates},
		{"entity_id", sizeOf(u.Entity), noTemplates},
		{"memory_variables", sizeOf(u.Variables), noTemplates},
	} {
		if field.size > 0 {
			return refuse(field.name, field.why)
		}
	}
	return nil
}

// sizeOf returns 0 for an empty value, and otherwise the value's length, or 1 if it has none.
func sizeOf(value any) int {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len()
	} else if !v.IsValid() || v.IsZero() {
		return 0
	}
	return 1
}

// checkTimezone returns a 422 for the name of no timezone. It also refuses Local, the server's own timezone, because
// callers do not know it.
func checkTimezone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return rest.Unprocessable("body.timezone", fmt.Sprintf("expected the IANA name of a timezone, such as "+
			"Europe/Berlin. Got: %.50q", name))
	}
	return nil
}

// CreateAgent is a request to create an agent.
type CreateAgent struct {
	AgentFields
	Type rest.Opt[agentType] `json:"agent_type,omitzero"`

	MemoryBlocks    rest.Opt[[]CreateBlock]    `json:"memory_blocks,omitzero" doc:"Blocks to create for the agent."`
	InitialMessages rest.Opt[[]InitialMessage] `json:"initial_message_sequence,omitzero" doc:"After the system prompt."`
}

// Client holds the headers by which a client of Letta's can be told from others.
type Client struct {
	UserAgent string `header:"User-Agent" hidden:"true"`
	FernSDK   string `header:"X-Fern-SDK-Name" hidden:"true"` // the clients before version 1.0
}

func (c Client) isLettas() bool {
	return strings.HasPrefix(c.UserAgent, "Letta/") || strings.HasPrefix(c.UserAgent, "AsyncLetta/") || c.FernSDK != ""
}

// WantsState reports whether the client is so old that it expects an agent's state where newer ones expect null.
func (c Client) WantsState() bool { return c.FernSDK != "" }

// For returns the request with made_for as the client implies it, if the request does not say it.
func (c CreateAgent) For(client Client) CreateAgent {
	if c.MadeFor.Value == "" && (c.Type.Value != "" || client.isLettas()) {
		c.MadeFor = rest.Opt[string]{Set: true, Value: agent.ForLetta}
	}
	return c
}

type agentType string

func (agentType) Schema(rest.Registry) *rest.Schema {
	return rest.Enum(rest.Each(agent.Types, func(name string) any { return name })...)
}

// UpdateAgent changes the fields that are present.
type UpdateAgent struct {
	AgentFields
	LastRun        rest.Opt[time.Time]  `json:"last_run_completion,omitzero" doc:"When a program's own run of it ended."`
	LastRunMS      rest.Opt[int64]      `json:"last_run_duration_ms,omitzero" minimum:"0"`
	LastStopReason rest.Opt[stopReason] `json:"last_stop_reason,omitzero"`
}

type stopReason string

func (stopReason) Schema(rest.Registry) *rest.Schema {
	return rest.Enum("end_turn", "error", "llm_api_error", "invalid_llm_response", "invalid_tool_call", "max_steps",
		"max_tokens_exceeded", "no_tool_call", "tool_rule", "cancelled", "insufficient_credits", "requires_approval",
		"context_window_overflow_in_system_prompt")
}

// New returns the agent to create. ErrInvalid if a field asks for something that Loci does not serve.
func (c CreateAgent) New() (agent.New, error) {
	err := cmp.Or(c.check(), checkTimezone(c.Timezone.Value), checkThinking(c.modelSettings()),
		checkHandle("model", c.Model.Value))
	if err != nil {
		return agent.New{}, err
	}
	config := readLLMConfig(c.LLMConfig.Value)
	messages, err := drafts(c.InitialMessages.Value)
	if err != nil {
		return agent.New{}, err
	}
	settings, err := c.settings()
	if err != nil {
		return agent.New{}, err
	}
	settings.ModelSettings = withoutNulls(c.modelSettings())
	if !c.Autoclear.Value && c.MadeFor.Value == agent.ForLetta && agent.ClearsAlways(string(c.Type.Value)) {
		settings.MessageBufferAutoclear = new(true)
	}
	return agent.New{
		Messages: messages, Blocks: rest.Each(c.MemoryBlocks.Value, CreateBlock.New), BlockIDs: c.BlockIDs.Value,
		IdentityIDs: c.IdentityIDs.Value,
		Name:        *cmp.Or(c.Name.Pointer(), new(randomName())), Type: string(c.Type.Value), System: c.System.Value,
		Description: c.Description.Pointer(), Timezone: c.Timezone.Value, Settings: settings,
		Model: cmp.Or(notEmpty(c.Model), config.handle()), Embedding: notEmpty(c.Embedding), Hidden: c.Hidden.Value,
		Metadata: json.RawMessage(c.Metadata.Value), Tags: c.Tags.Value, FolderIDs: c.folders(),
		WindowLimit:  cmp.Or(limitOf(c.WindowLimit).Value, config.ContextWindow),
		MaxFilesOpen: c.MaxFilesOpen.Pointer(), ViewChars: c.ViewChars.Pointer(),
	}, nil
}

// Update returns the change. ErrInvalid if a field asks for something that Loci does not serve.
func (u UpdateAgent) Update() (agent.Update, error) {
	err := cmp.Or(u.check(), checkTimezone(u.Timezone.Value), checkThinking(u.modelSettings()),
		checkHandle("model", u.Model.Value), u.checkMessageIDs())
	if err != nil {
		return agent.Update{}, err
	}
	settings, err := u.settings()
	if err != nil {
		return agent.Update{}, err
	}
	config := readLLMConfig(u.LLMConfig.Value)
	window := limitOf(u.WindowLimit)
	if !window.Set && config.ContextWindow != nil {
		window = agent.Limit{Set: true, Value: config.ContextWindow}
	}
	return agent.Update{
		Name: u.Name.Pointer(), Description: u.Description.Pointer(), System: u.System.Pointer(),
		Timezone: notEmpty(u.Timezone), Model: cmp.Or(notEmpty(u.Model), config.handle()), Embedding: notEmpty(u.Embedding),
		Metadata: json.RawMessage(u.Metadata.Value), Tags: u.Tags.Value, Hidden: u.Hidden.Pointer(), Settings: settings,
		Unset:     u.unset(),
		FolderIDs: u.folders(), BlockIDs: u.BlockIDs.Value, IdentityIDs: u.IdentityIDs.Value,
		ModelSettings: u.modelSettings(),
		WindowLimit:   window, MaxFilesOpen: agent.Limit{Set: u.MaxFilesOpen.Set, Value: u.MaxFilesOpen.Pointer()},
		ViewChars: agent.Limit{Set: u.ViewChars.Set, Value: u.ViewChars.Pointer()},
		LastRun: agent.LastRun{Completion: u.LastRun.Pointer(), DurationMS: u.LastRunMS.Pointer(),
			StopReason: (*string)(u.LastStopReason.Pointer())},
	}, nil
}

// checkMessageIDs refuses any list of messages, because the log decides which messages a model sees.
func (u UpdateAgent) checkMessageIDs() error {
	if u.MessageIDs.Set && !u.MessageIDs.Null {
		return refuse("message_ids", "what the model sees follows from what was said; leave it out, and begin another "+
			"conversation, or reset the messages")
	}
	return nil
}

// checkHandle returns a 422 if the handle of a model lacks the provider or the model's name. field is the handle's
// place in the body.
func checkHandle(field, handle string) error {
	if provider, name, hasSlash := strings.Cut(handle, "/"); hasSlash &&
		(provider == "" || strings.Trim(name, "/ ") == "") {
		return rest.Unprocessable("body."+field, fmt.Sprintf("expected a provider and a model, such as openai/gpt-4o. "+
			"Got: %.50q", handle))
	}
	return nil
}

func (f AgentFields) settings() (settings agent.Settings, err error) {
	settings = agent.Settings{
		CompactionSettings:     json.RawMessage(f.Compaction.Value.Object),
		ResponseFormat:         json.RawMessage(f.Response.Value),
		OpenOnAttach:           f.OpenOnAttach.Pointer(),
		MessageBufferAutoclear: f.Autoclear.Pointer(), EnableSleeptime: f.Sleeptime.Pointer(),
		MadeFor: f.MadeFor.Value, RecallScope: f.RecallScope.Value, WorkingMemory: f.Working.Value,
		Flush: f.Flush.Pointer(), Handover: f.Handover.Pointer(), Prompt: f.Prompt.Pointer(),
		Skills: f.Skills.Pointer(), Gateway: f.Gateway.Pointer(),
		Recall: f.Recall.Pointer(),
	}
	if f.Sleeptime.Value {
		settings.EnableSleeptime = nil
	}
	if settings.ToolRules, err = toolRules(f.ToolRules.Value); err == nil {
		err = f.Compaction.Value.Check()
	}
	return settings, err
}

// unset returns the names of Loci's own settings that null resets to their defaults.
func (f AgentFields) unset() (names []string) {
	for name, null := range map[string]bool{"flush": f.Flush.Null, "handover": f.Handover.Null, "prompt": f.Prompt.Null,
		"skills": f.Skills.Null, "gateway": f.Gateway.Null, "recall": f.Recall.Null,
		"working_memory": f.Working.Null, "recall_scope": f.RecallScope.Null, "made_for": f.MadeFor.Null,
		"open_on_attach": f.OpenOnAttach.Null} {
		if null {
			names = append(names, name)
		}
	}
	return names
}

// Choice returns the caller's choice of the agent's tools.
func (f AgentFields) Choice() tool.Choice {
	c := tool.Choice{Set: f.ToolSet.Value, IncludeBase: f.IncludeBase.Pointer(), Names: f.Tools.Value,
		IDs: f.ToolIDs.Value}
	if f.ToolSet.Null && c.IncludeBase == nil && c.Names == nil && c.IDs == nil {
		c.Set = agent.DefaultTools
	}
	return c
}

// Choice returns the caller's choice of tools for a new agent. Letta's clients send empty lists when they choose
// nothing. If they name tools, they expect the base tools in addition.
func (c CreateAgent) Choice() tool.Choice {
	choice := c.AgentFields.Choice()
	if len(choice.Names)+len(choice.IDs) == 0 {
		choice.Names, choice.IDs = nil, nil
	} else if c.withBase() && choice.Set == "" {
		choice.IncludeBase = new(true)
	}
	if c.isDefault() && c.withBase() && slices.Contains(choice.Names, agent.SendMessage) {
		choice.Names = slices.DeleteFunc(slices.Clone(choice.Names), func(n string) bool { return n == agent.SendMessage })
	}
	return choice
}

// withBase reports whether a new agent gets the base tools of its type besides those that are named.
func (c CreateAgent) withBase() bool {
	return c.IncludeBase.Null || !c.IncludeBase.Set || c.IncludeBase.Value
}

func (c CreateAgent) isDefault() bool {
	return c.MadeFor.Value == agent.ForLetta && (c.Type.Value == "" || string(c.Type.Value) == agent.DefaultType)
}

func (f AgentFields) folders() []string {
	if f.FolderIDs.Value != nil {
		return f.FolderIDs.Value
	}
	return f.SourceIDs.Value
}

// llmConfig holds the fields that Loci reads of a model's configuration. Older clients send such a configuration.
type llmConfig struct {
	Handle        *string `json:"handle"`
	Model         string  `json:"model"`
	ContextWindow *int    `json:"context_window"`
}

func readLLMConfig(fields LLMConfigFields) (c llmConfig) {
	_ = json.Unmarshal(fields.Object, &c) // the schema has checked the types
	if c.ContextWindow != nil && *c.ContextWindow == 0 {
		c.ContextWindow = nil
	}
	return c
}

func (c llmConfig) handle() *string {
	if c.Handle != nil && *c.Handle != "" {
		return c.Handle
	}
	return notEmpty(rest.Opt[string]{Set: true, Value: c.Model})
}

// limitOf returns the change of a window's limit. Null and 0 reset the limit to its default, 0 as in Letta. An absent
// field changes nothing.
func limitOf(field rest.Opt[int]) agent.Limit {
	if field.Value == 0 {
		return agent.Limit{Set: field.Set}
	}
	return agent.Limit{Set: field.Set, Value: field.Pointer()}
}

// notEmpty returns a text; nil for null and for the empty text.
func notEmpty(field rest.Opt[string]) *string {
	if field.Value == "" {
		return nil
	}
	return field.Pointer()
}

func refuse(field, why string) error { return db.Invalid("%s: %s", field, why) }
