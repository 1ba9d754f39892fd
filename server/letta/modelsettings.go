package letta

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/server/rest"
)

// ModelSettings are settings for requests to an agent's model. They cover the settings of all of Letta's providers.
// Null unsets a setting.
type ModelSettings struct{ rest.Object }

// settingsOfModels are the fields of ModelSettings.
type settingsOfModels struct {
	Provider  rest.Opt[string] `json:"provider_type,omitzero" doc:"That of the model's handle if absent."`
	MaxTokens rest.Opt[int]    `json:"max_output_tokens,omitzero" minimum:"1" doc:"Of an answer."`
	SharedSettings

	Reasoning      rest.Opt[ReasoningEffort] `json:"reasoning,omitzero" doc:"Of OpenAI's models."`
	Thinking       rest.Opt[thinking]        `json:"thinking,omitzero" doc:"Of Anthropic's models."`
	ThinkingConfig rest.Opt[thinkingConfig]  `json:"thinking_config,omitzero" doc:"Of Google's models."`
	ResponseSchema rest.Opt[rest.Object]     `json:"response_schema,omitzero"`
	ToolCallParser rest.Opt[string]          `json:"tool_call_parser,omitzero"`

	SendAll rest.Opt[bool] `json:"send_all,omitzero" doc:"Send also settings that models of this name refuse."`
}

// SharedSettings have the same names in model_settings and in llm_config.
type SharedSettings struct {
	ParallelCalls rest.Opt[bool]        `json:"parallel_tool_calls,omitzero"`
	Temperature   rest.Opt[float64]     `json:"temperature,omitzero" minimum:"0" maximum:"2"`
	Penalty       rest.Opt[float64]     `json:"frequency_penalty,omitzero" minimum:"-2" maximum:"2"`
	Response      rest.Opt[rest.Object] `json:"response_format,omitzero"`
	Verbosity     rest.Opt[string]      `json:"verbosity,omitzero" enum:"low,medium,high"`
	Strict        rest.Opt[bool]        `json:"strict,omitzero"`
	Effort        rest.Opt[string]      `json:"effort,omitzero" enum:"low,medium,high,xhigh,max"`
}

// Reasoner holds the reasoning settings that older clients send, in llm_config or beside it.
type Reasoner struct {
	Reasons     rest.Opt[bool] `json:"enable_reasoner,omitzero"`
	MaxThinking rest.Opt[int]  `json:"max_reasoning_tokens,omitzero" minimum:"0"`
}

// ReasoningEffort is how hard an OpenAI model should think.
type ReasoningEffort struct {
	Level rest.Opt[string] `json:"reasoning_effort,omitzero" enum:"none,minimal,low,medium,high,xhigh"`
}

type (
	thinking struct {
		Type   rest.Opt[string] `json:"type,omitzero" enum:"enabled,disabled,adaptive"`
		Budget rest.Opt[int]    `json:"budget_tokens,omitzero" minimum:"0"`
		Clear  rest.Opt[bool]   `json:"clear_thinking,omitzero"`
	}
	thinkingConfig struct {
		Include rest.Opt[bool] `json:"include_thoughts,omitzero"`
		Budget  rest.Opt[int]  `json:"thinking_budget,omitzero"`
	}
)

// Schema implements huma.SchemaProvider.
func (ModelSettings) Schema(r rest.Registry) *rest.Schema {
	return r.Schema(reflect.TypeFor[settingsOfModels](), false, "")
}

// LLMConfigFields is a model's configuration as older clients send it: the model, its window and its settings.
type LLMConfigFields struct{ rest.Object }

type fieldsOfLLMConfig struct {
	Handle        rest.Opt[string] `json:"handle,omitzero"`
	Model         rest.Opt[string] `json:"model,omitzero"`
	ContextWindow rest.Opt[int]    `json:"context_window,omitzero"`
	MaxTokens     rest.Opt[int]    `json:"max_tokens,omitzero" minimum:"1"`
	SharedSettings
	Reasoner
	ReasoningEffort

	// These tell a server how to call the model. Loci ignores them.
	EndpointType  any `json:"model_endpoint_type,omitempty"`
	Endpoint      any `json:"model_endpoint,omitempty"`
	ProviderName  any `json:"provider_name,omitempty"`
	Category      any `json:"provider_category,omitempty"`
	Wrapper       any `json:"model_wrapper,omitempty"`
	DisplayName   any `json:"display_name,omitempty"`
	InnerThoughts any `json:"put_inner_thoughts_in_kwargs,omitempty"`
	Compatibility any `json:"compatibility_type,omitempty"`
	Tier          any `json:"tier,omitempty"`
	Logprobs      any `json:"return_logprobs,omitempty"`
	TopLogprobs   any `json:"top_logprobs,omitempty"`
	TokenIDs      any `json:"return_token_ids,omitempty"`
	Parser        any `json:"tool_call_parser,omitempty"`
}

// Schema implements huma.SchemaProvider.
func (LLMConfigFields) Schema(r rest.Registry) *rest.Schema {
	return r.Schema(reflect.TypeFor[fieldsOfLLMConfig](), false, "")
}

// OfModel holds settings of the model that an agent may get outside of model_settings. model_settings takes precedence.
type OfModel struct {
	Reasoner
	MaxTokens     rest.Opt[int]  `json:"max_tokens,omitzero" minimum:"1" doc:"As model_settings.max_output_tokens."`
	Reasoning     rest.Opt[bool] `json:"reasoning,omitzero" doc:"As enable_reasoner."`
	ParallelCalls rest.Opt[bool] `json:"parallel_tool_calls,omitzero"`
}

// sameInConfig are the names of settings that have the same form in llm_config and in Loci's storage.
var sameInConfig = append(namesOf[SharedSettings](), namesOf[Reasoner]()...)

// namesOf returns the JSON names of a struct's fields.
func namesOf[T any]() (names []string) {
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// modelSettings returns the model settings in a request; nil if there are none. Null marks a setting to unset.
func (f AgentFields) modelSettings() json.RawMessage {
	change := settingsIn(f.LLMConfig.Value.Object)
	setIfGiven(change, "max_output_tokens", f.MaxTokens)
	setIfGiven(change, "max_reasoning_tokens", f.MaxThinking)
	setIfGiven(change, "enable_reasoner", f.Reasoning)
	setIfGiven(change, "enable_reasoner", f.Reasons)
	maps.DeleteFunc(change, isNull)
	if f.MaxTokens.Null { // as in Letta
		change["max_output_tokens"] = json.RawMessage("null")
	}
	maps.Copy(change, objectOf(f.ModelSettings.Value.Object))
	setIfGiven(change, "parallel_tool_calls", f.ParallelCalls)
	if len(change) == 0 {
		return nil
	}
	return asObject(change)
}

// SettingsIn returns the model settings in an llm_config of Letta's, in the form in which Loci stores them; nil if
// there are none.
func SettingsIn(config []byte) json.RawMessage {
	settings := settingsIn(config)
	maps.DeleteFunc(settings, isNull)
	if len(settings) == 0 {
		return nil
	}
	return asObject(settings)
}

// settingsIn returns the model settings in an llm_config. Some may be null or empty.
func settingsIn(raw []byte) map[string]json.RawMessage {
	config := objectOf(raw)
	settings := map[string]json.RawMessage{"max_output_tokens": config["max_tokens"]}
	for _, name := range sameInConfig {
		settings[name] = config[name]
	}
	if effort := config["reasoning_effort"]; effort != nil && string(effort) != "null" {
		settings["reasoning"] = fmt.Appendf(nil, `{"reasoning_effort":%s}`, effort)
	}
	return settings
}

// checkThinking returns a 422 if the thinking budget is as large as the whole answer, because Anthropic refuses that.
func checkThinking(settings json.RawMessage) error {
	var m agent.ModelSettings
	_ = json.Unmarshal(settings, &m) // the schema has checked the types
	if m.Thinking == nil || m.Thinking.Type != "enabled" || m.MaxOutputTokens == nil ||
		m.Thinking.BudgetTokens < *m.MaxOutputTokens {
		return nil
	}
	return rest.Unprocessable("body.model_settings.thinking.budget_tokens", fmt.Sprintf("expected less than "+
		"max_output_tokens, %d. Got: %d", *m.MaxOutputTokens, m.Thinking.BudgetTokens))
}

func setIfGiven[T any](fields map[string]json.RawMessage, name string, value rest.Opt[T]) {
	if value.Set && !value.Null {
		fields[name], _ = json.Marshal(value.Value) // numbers and booleans can be marshaled
	}
}

func isNull(_ string, value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// objectOf returns the fields of an object.
func objectOf(raw []byte) (fields map[string]json.RawMessage) {
	_ = json.Unmarshal(raw, &fields) // raw is an object, or empty
	return fields
}

// asObject returns the JSON of an object with these fields.
func asObject(fields map[string]json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(fields) // the fields came from JSON
	return raw
}

// withoutNulls returns an object without its null fields; nil if no field is left.
func withoutNulls(object json.RawMessage) json.RawMessage {
	fields := objectOf(object)
	maps.DeleteFunc(fields, isNull)
	if len(fields) == 0 {
		return nil
	}
	return asObject(fields)
}

// providers are the providers with model settings of their own in Letta's clients.
var providers = []string{"openai", "anthropic", "google_ai", "google_vertex", "azure", "xai", "groq", "deepseek",
	"together", "bedrock", "sglang", "moonshot", "zai", "baseten", "openrouter"}

// modelSettingsOf returns an agent's model settings as Letta shows them: with their provider, and without settings that
// belong in an llm_config. It returns nil if there are none.
func modelSettingsOf(a agent.Agent) json.RawMessage {
	fields := objectOf(a.Settings.ModelSettings)
	delete(fields, "enable_reasoner")
	delete(fields, "max_reasoning_tokens")
	if len(fields) == 0 {
		return nil
	}
	if fields["provider_type"] == nil {
		provider := "openai" // the endpoint's protocol
		if a.Model != nil {
			if name, _, _ := strings.Cut(*a.Model, "/"); slices.Contains(providers, name) {
				provider = name
			}
		}
		fields["provider_type"], _ = json.Marshal(provider)
	}
	return asObject(fields)
}
