package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// windows are context windows of models in tokens, by the beginning of the models' names. A longer beginning stands
// before a shorter one. Source: the tables of Letta's server.
var windows = []struct {
	prefix string
	tokens int
}{
	{"gpt-5", 272_000},
	{"gpt-4.1", 256_000},
	{"gpt-4o", 128_000},
	{"gpt-4-turbo", 128_000},
	{"gpt-4", 8_192},
	{"o1", 200_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"claude-", 200_000},
	{"gemini-", 1_048_576},
}

// Models are the handles of models that clients may choose. An agent may also name any other.
var Models = []string{"openai/gpt-5", "openai/gpt-5-mini", "openai/gpt-4.1", "openai/gpt-4.1-mini", "openai/gpt-4o",
	"openai/gpt-4o-mini", "openai/gpt-4-turbo", "openai/gpt-4", "openai/o1", "openai/o3", "openai/o4-mini",
	"anthropic/claude-opus-4-1", "anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5", "google_ai/gemini-2.5-pro",
	"google_ai/gemini-2.5-flash"}

// DefaultModel returns the handle of the model that writes summaries, and its context window in tokens if the operator
// set it, otherwise 0. The handle is empty if there is no such model.
func (s *Store) DefaultModel(ctx context.Context) (handle string, window int) {
	if s.Compaction == nil || s.Compaction.Models == nil {
		return "", 0
	}
	m := s.Compaction.Models(ctx, "")
	if m == nil || m.Name == "" {
		return "", 0
	}
	return "openai/" + m.Name, m.Window // the API of its endpoint
}

// EndpointModels returns the handles of the models that the default model's endpoint lists; none if there is no
// endpoint or no list.
func (s *Store) EndpointModels(ctx context.Context) (handles []string) {
	if s.Compaction == nil || s.Compaction.Models == nil {
		return nil
	}
	m := s.Compaction.Models(ctx, "")
	if m == nil || m.List == nil {
		return nil
	}
	for _, name := range m.List(ctx) {
		handles = append(handles, "openai/"+name)
	}
	return handles
}

// windowOf returns the window limit of a new agent: the caller's, or what the operator set for its model.
func (s *Store) windowOf(ctx context.Context, n New) *int {
	handle, window := s.DefaultModel(ctx)
	if n.WindowLimit != nil || n.Model == nil || window == 0 || *n.Model != handle {
		return n.WindowLimit
	}
	return &window
}

// assumedWindow, in tokens, is used if the window is unknown. It is the largest window with the same file limits as an
// unknown one.
const assumedWindow = 32_768

// AssumedWindow returns the context window in tokens that prompts are made for: 32,768 if it is unknown.
func (a Agent) AssumedWindow() int { return cmp.Or(a.Window(), assumedWindow) }

// Window returns the context window in tokens: the operator's limit, or the model's window; 0 if unknown.
func (a Agent) Window() int {
	if a.WindowLimit != nil {
		return *a.WindowLimit
	}
	if a.Model == nil {
		return 0
	}
	name := strings.ToLower(modelName(*a.Model))
	for _, w := range windows {
		if strings.HasPrefix(name, w.prefix) {
			return w.tokens
		}
	}
	return 0
}

// ModelIn returns the handle of the model that answers the agent in a conversation; empty if there is none.
func (a Agent) ModelIn(c recall.Conversation) string { return a.in(c).model() }

// model returns the handle of the agent's model; empty if it has none.
func (a Agent) model() string {
	if a.Model == nil {
		return ""
	}
	return *a.Model
}

// modelName returns a model's handle without the provider.
func modelName(handle string) string { return handle[strings.LastIndexByte(handle, '/')+1:] }

// ModelSettings say how a model answers, under Letta's names; nil is not set. Temperature and the fields after it have
// the form in which their provider takes them.
type ModelSettings struct {
	Provider        *string         `json:"provider_type"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	ParallelCalls   *bool           `json:"parallel_tool_calls"`
	Reasons         *bool           `json:"enable_reasoner"`
	MaxThinking     *int            `json:"max_reasoning_tokens"`
	Thinking        *Thinking       `json:"thinking"`
	Reasoning       *Reasoning      `json:"reasoning"`
	ResponseFormat  json.RawMessage `json:"response_format"`
	Temperature     *float64        `json:"temperature"`
	Penalty         *float64        `json:"frequency_penalty"`
	Effort          *string         `json:"effort"`
	Verbosity       *string         `json:"verbosity"`
	Strict          *bool           `json:"strict"`
	SendAll         *bool           `json:"send_all"` // sends also what the model is known to refuse
}

// Thinking says how long a model of Anthropic thinks.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

// Reasoning says how hard a model of OpenAI thinks.
type Reasoning struct {
	Effort *string `json:"reasoning_effort"`
}

// ModelSettings returns the settings of the agent's model. A stored value of a wrong type counts as not set.
func (a Agent) ModelSettings() (m ModelSettings) {
	_ = json.Unmarshal(a.Settings.ModelSettings, &m) // fields that fit are read even if others do not
	return m
}

// accepted returns the settings without those that the agent's model refuses, unless all are to be sent.
func (m ModelSettings) accepted(handle string) ModelSettings {
	if m.SendAll != nil && *m.SendAll {
		return m
	}
	for _, s := range []struct {
		name  string
		unset func()
	}{
		{"temperature", func() { m.Temperature = nil }},
		{"frequency_penalty", func() { m.Penalty = nil }},
		{"parallel_tool_calls", func() { m.ParallelCalls = nil }},
		{"verbosity", func() { m.Verbosity = nil }},
		{"reasoning", func() { m.Reasoning = nil }},
		{"effort", func() { m.Effort = nil }},
		{"thinking", func() { m.Thinking, m.Reasons = nil, nil }},
	} {
		if refuses(modelName(handle), s.name) {
			s.unset()
		}
	}
	return m
}

// OneCall reports whether the agent's model makes one call at a time: if its settings say so, and in an agent made for
// Letta unless its settings are given, and no rule orders calls.
func (a Agent) OneCall() bool {
	if parallel := a.ModelSettings().ParallelCalls; parallel != nil && !*parallel {
		return true
	}
	if a.MadeFor() != ForLetta {
		return false
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(a.Settings.ModelSettings, &given)
	delete(given, "provider_type")
	return len(given) == 0 || a.ordersCalls()
}

// ordersCalls reports whether the agent has rules other than that calls wait for approval.
func (a Agent) ordersCalls() bool {
	var rules []toolRule
	_ = json.Unmarshal(a.Settings.ToolRules, &rules) // clients may store anything
	return slices.ContainsFunc(rules, func(r toolRule) bool { return r.Type != "requires_approval" })
}

// options returns the request's fields for the agent's model and its settings, in this format. leftOut names settings
// that the format lacks, that the model refuses, or that its provider would refuse in this combination.
func (a Agent) options(f Format, hasTools bool) (fields map[string]any, leftOut []string) {
	var settings map[string]json.RawMessage
	_ = json.Unmarshal(a.Settings.ModelSettings, &settings)
	if settings == nil {
		settings = map[string]json.RawMessage{}
	}
	m := a.ModelSettings().accepted(a.model())
	if a.Settings.ResponseFormat != nil && settings["response_format"] == nil {
		settings["response_format"], m.ResponseFormat = a.Settings.ResponseFormat, a.Settings.ResponseFormat
	}
	if a.OneCall() && !refuses(modelName(a.model()), "parallel_tool_calls") {
		m.ParallelCalls = new(false)
	}
	delete(settings, "provider_type")
	delete(settings, "send_all")
	switch f {
	case Anthropic:
		fields = m.anthropic(hasTools, settings)
	case Responses:
		fields = m.responses(modelName(a.model()), hasTools, settings)
	default:
		fields = m.openAI(modelName(a.model()), hasTools, settings)
	}
	return fields, slices.Sorted(maps.Keys(settings))
}

// reasons matches names of OpenAI's models that think before they answer. They take max_completion_tokens; some servers
// of other models know only max_tokens.
var reasons = regexp.MustCompile(`^(o[1-9]|gpt-[5-9])`)

// options are a request's fields, and the settings that no field has used yet.
type options struct {
	fields map[string]any
	left   map[string]json.RawMessage
}

// set copies a setting to a field, unless the value is nil.
func set[T any](o options, field string, value *T, setting string) {
	if value != nil {
		o.fields[field] = *value
		delete(o.left, setting)
	}
}

func (m ModelSettings) openAI(model string, hasTools bool, rest map[string]json.RawMessage) map[string]any {
	o := options{map[string]any{}, rest}
	limit := "max_tokens"
	if reasons.MatchString(model) {
		limit = "max_completion_tokens"
	}
	set(o, limit, m.MaxOutputTokens, "max_output_tokens")
	set(o, "temperature", m.Temperature, "temperature")
	set(o, "frequency_penalty", m.Penalty, "frequency_penalty")
	set(o, "verbosity", m.Verbosity, "verbosity")
	if m.Reasoning != nil {
		set(o, "reasoning_effort", m.Reasoning.Effort, "reasoning")
	}
	if hasTools { // it is refused without tools
		set(o, "parallel_tool_calls", m.ParallelCalls, "parallel_tool_calls")
	}
	if rest["response_format"] != nil {
		set(o, "response_format", &m.ResponseFormat, "response_format")
	}
	return o.fields
}

// responses returns the fields of a request to OpenAI's Responses API. OpenAI keeps no state, because Loci does: the
// model's thoughts come back encrypted for the next request.
func (m ModelSettings) responses(model string, hasTools bool, rest map[string]json.RawMessage) map[string]any {
	o := options{map[string]any{"store": false}, rest}
	if reasons.MatchString(model) {
		o.fields["include"] = []string{"reasoning.encrypted_content"}
	}
	set(o, "max_output_tokens", m.MaxOutputTokens, "max_output_tokens")
	set(o, "temperature", m.Temperature, "temperature")
	if m.Reasoning != nil && m.Reasoning.Effort != nil {
		set(o, "reasoning", &map[string]any{"effort": *m.Reasoning.Effort}, "reasoning")
	}
	if hasTools { // it is refused without tools
		set(o, "parallel_tool_calls", m.ParallelCalls, "parallel_tool_calls")
	}
	text := map[string]any{}
	if m.Verbosity != nil {
		text["verbosity"] = *m.Verbosity
		delete(rest, "verbosity")
	}
	if format := responsesFormat(m.ResponseFormat); rest["response_format"] != nil && format != nil {
		text["format"] = format
		delete(rest, "response_format")
	}
	if len(text) > 0 {
		o.fields["text"] = text
	}
	return o.fields
}

// responsesFormat returns an answer's format as the Responses API names it: the fields of json_schema in chat
// completions stand beside the type there.
func responsesFormat(chatFormat json.RawMessage) map[string]json.RawMessage {
	var format, within map[string]json.RawMessage
	if json.Unmarshal(chatFormat, &format) != nil {
		return nil
	}
	if json.Unmarshal(format["json_schema"], &within) == nil {
		delete(format, "json_schema")
		maps.Copy(format, within)
	}
	return format
}

// leastThinking is the fewest tokens that Anthropic's models may think with, and Letta's default.
const leastThinking = 1024

func (m ModelSettings) anthropic(hasTools bool, rest map[string]json.RawMessage) map[string]any {
	o := options{map[string]any{}, rest}
	set(o, "max_tokens", m.MaxOutputTokens, "max_output_tokens")
	thinking := m.thinking()
	if thinking != nil && m.MaxOutputTokens != nil && thinking.BudgetTokens >= *m.MaxOutputTokens {
		thinking = nil // Anthropic refuses it, because the answer's limit includes the tokens of thinking
	}
	set(o, "thinking", thinking, "thinking")
	if thinking != nil || m.Reasons == nil || !*m.Reasons {
		delete(rest, "enable_reasoner")
		delete(rest, "max_reasoning_tokens")
	}
	thinks := thinking != nil && thinking.Type != "disabled"
	if m.Temperature != nil && *m.Temperature <= 1 && (!thinks || *m.Temperature == 1) {
		set(o, "temperature", m.Temperature, "temperature")
	}
	if m.Effort != nil {
		set(o, "output_config", &map[string]any{"effort": *m.Effort}, "effort")
	}
	if m.ParallelCalls != nil && hasTools {
		set(o, "tool_choice", &map[string]any{"type": "auto", "disable_parallel_tool_use": !*m.ParallelCalls},
			"parallel_tool_calls")
	}
	return o.fields
}

// thinking returns how long the model thinks; nil if the settings do not say.
func (m ModelSettings) thinking() *Thinking {
	switch {
	case m.Thinking != nil && m.Thinking.Type == "enabled":
		return &Thinking{"enabled", max(m.Thinking.BudgetTokens, leastThinking)}
	case m.Thinking != nil && m.Thinking.Type != "":
		return &Thinking{Type: m.Thinking.Type}
	case m.Reasons != nil && *m.Reasons && m.MaxThinking != nil && *m.MaxThinking > 0:
		return &Thinking{"enabled", max(*m.MaxThinking, leastThinking)}
	}
	return nil
}

// in returns the agent with the model, model settings and window that it has in a conversation. The conversation may
// have its own.
func (a Agent) in(c recall.Conversation) Agent {
	if c.Model != nil {
		a.Model, a.WindowLimit, a.Settings.ModelSettings = c.Model, nil, nil
	}
	a.Settings.ModelSettings = merged(a.Settings.ModelSettings, c.ModelSettings)
	if c.WindowLimit != nil {
		a.WindowLimit = c.WindowLimit
	}
	a.InConversation = c.Compaction
	return a
}
