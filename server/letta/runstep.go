package letta

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// RunStep is one answer of a model, in Letta's shape.
type RunStep struct {
	ID                 string            `json:"id"`
	RunID              string            `json:"run_id"`
	AgentID            string            `json:"agent_id"`
	Origin             rest.Null         `json:"origin"`
	ProviderID         rest.Null         `json:"provider_id"`
	ProviderName       string            `json:"provider_name"`
	ProviderCategory   string            `json:"provider_category"`
	Model              string            `json:"model"`
	ModelHandle        string            `json:"model_handle"`
	ModelEndpoint      rest.Null         `json:"model_endpoint"`
	ContextWindowLimit int               `json:"context_window_limit"`
	PromptTokens       int               `json:"prompt_tokens"`
	CompletionTokens   int               `json:"completion_tokens"`
	TotalTokens        int               `json:"total_tokens"`
	CachedTokens       int               `json:"cached_input_tokens"`
	CacheWriteTokens   int               `json:"cache_write_tokens"`
	ReasoningTokens    int               `json:"reasoning_tokens"`
	PromptDetails      rest.Object       `json:"prompt_tokens_details"`
	CompletionDetails  rest.Object       `json:"completion_tokens_details"`
	StopReason         *string           `json:"stop_reason"`
	Status             string            `json:"status" enum:"pending,success,failed,cancelled"`
	ErrorType          *string           `json:"error_type"`
	ErrorData          rest.Object       `json:"error_data"`
	Feedback           *string           `json:"feedback" enum:"positive,negative"`
	Tags               []string          `json:"tags"`
	Messages           []InternalMessage `json:"messages" deprecated:"true" doc:"Always empty: they have a route."`
	TID                rest.Null         `json:"tid"`
	TraceID            rest.Null         `json:"trace_id"`
	RequestID          rest.Null         `json:"request_id"`
	ProjectID          rest.Null         `json:"project_id"`
	CreatedAt          time.Time         `json:"created_at"`
}

// StepOf returns a step in Letta's shape.
func StepOf(s loop.Step) RunStep {
	step := RunStep{ID: s.ID, RunID: s.RunID, AgentID: s.AgentID, ProviderName: s.Provider, ProviderCategory: "base",
		Model: s.Model, ModelHandle: s.Handle, ContextWindowLimit: s.ContextWindow, PromptTokens: s.Prompt,
		CompletionTokens: s.Completion, TotalTokens: s.Prompt + s.Completion, CachedTokens: s.Cached,
		CacheWriteTokens: s.CacheWrite, ReasoningTokens: s.Reasoning, StopReason: s.StopReason, Status: s.Status,
		ErrorType: s.ErrorType, Feedback: s.Feedback, Tags: append([]string{}, s.Tags...), Messages: []InternalMessage{},
		CreatedAt: s.CreatedAt}
	step.PromptDetails, step.CompletionDetails = tokenDetails(s.Cached, s.CacheWrite, s.Reasoning)
	if s.Error != nil {
		step.ErrorData, _ = json.Marshal(map[string]string{"message": *s.Error}) // a text can be marshaled
	}
	return step
}

// StepMetrics says how long a step took.
type StepMetrics struct {
	ID             string    `json:"id"`
	RunID          string    `json:"run_id"`
	AgentID        string    `json:"agent_id"`
	StepStartNS    int64     `json:"step_start_ns"`
	StepNS         int64     `json:"step_ns"`
	RequestStartNS int64     `json:"llm_request_start_ns"`
	RequestNS      int64     `json:"llm_request_ns"`
	ToolNS         rest.Null `json:"tool_execution_ns"`
	ProviderID     rest.Null `json:"provider_id"`
	ProjectID      rest.Null `json:"project_id"`
	TemplateID     rest.Null `json:"template_id"`
	BaseTemplateID rest.Null `json:"base_template_id"`
}

// StepMetricsOf returns the metrics of a step.
func StepMetricsOf(s loop.Step) StepMetrics {
	began := s.CreatedAt.UnixNano() - s.ModelNS
	return StepMetrics{ID: s.ID, RunID: s.RunID, AgentID: s.AgentID, StepStartNS: began, StepNS: s.ModelNS,
		RequestStartNS: began, RequestNS: s.ModelNS}
}

// Feedback is a client's opinion of a step.
type Feedback struct {
	Feedback rest.Opt[string]   `json:"feedback,omitzero" enum:"positive,negative" doc:"Null deletes it."`
	Tags     rest.Opt[[]string] `json:"tags,omitzero" doc:"Replace those of the step."`
}

// StepFilter narrows a list of steps.
type StepFilter struct {
	AgentID     string         `query:"agent_id"`
	Model       string         `query:"model"`
	From        string         `query:"start_date"`
	To          string         `query:"end_date"`
	Tags        []string       `query:"tags,explode"`
	Feedback    string         `query:"feedback" enum:"positive,negative" doc:"Only those with it."`
	HasFeedback rest.Opt[bool] `query:"has_feedback" doc:"Only those with feedback, or only the others."`
	OrderBy     string         `query:"order_by" enum:"created_at"`
}

// Filter returns the loop's filter. A 422 if a time cannot be read.
func (f StepFilter) Filter() (filter loop.StepFilter, err error) {
	filter = loop.StepFilter{AgentID: f.AgentID, Model: f.Model, Tags: f.Tags, Feedback: f.Feedback,
		HasFeedback: f.HasFeedback.Pointer()}
	if filter.From, err = recall.ParseStart(f.From, time.UTC); err != nil {
		return filter, rest.Unprocessable("query.start_date", "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	if filter.To, err = recall.ParseEnd(f.To, time.UTC); err != nil {
		return filter, rest.Unprocessable("query.end_date", "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	return filter, nil
}
