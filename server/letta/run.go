package letta

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/server/rest"
)

// Run is the work on one request, in Letta's shape.
type Run struct {
	ID              string        `json:"id"`
	AgentID         string        `json:"agent_id"`
	ConversationID  *string       `json:"conversation_id"`
	Status          string        `json:"status" enum:"created,running,completed,failed,cancelled"`
	StopReason      *string       `json:"stop_reason"`
	Error           *RunError     `json:"error,omitempty"`
	Background      bool          `json:"background"`
	Metadata        rest.Object   `json:"metadata"`
	RequestConfig   RequestConfig `json:"request_config"`
	CreatedAt       time.Time     `json:"created_at"`
	CompletedAt     *time.Time    `json:"completed_at"`
	TTFTNS          *int64        `json:"ttft_ns"`
	TotalDurationNS *int64        `json:"total_duration_ns"`
	CallbackURL     rest.Null     `json:"callback_url"`
	CallbackSentAt  rest.Null     `json:"callback_sent_at"`
	CallbackStatus  rest.Null     `json:"callback_status_code"`
	CallbackError   rest.Null     `json:"callback_error"`
	BaseTemplateID  rest.Null     `json:"base_template_id"`
	JobType         string        `json:"job_type" doc:"Always run; for clients that know runs as jobs."`
	UserID          rest.Null     `json:"user_id"`
}

// RequestConfig says how a run's client wants to see its messages.
type RequestConfig struct {
	Speech     bool     `json:"use_assistant_message"`
	SpeechTool string   `json:"assistant_message_tool_name"`
	SpeechArg  string   `json:"assistant_message_tool_kwarg"`
	Types      []string `json:"include_return_message_types"`
}

// RunOf returns a run in Letta's shape.
func RunOf(r loop.Run) Run {
	var v view
	_ = json.Unmarshal(r.Options.View, &v) // SendMessages wrote the view
	run := Run{ID: r.ID, AgentID: r.AgentID, Status: r.Status, StopReason: r.StopReason, Background: r.Background,
		CreatedAt: r.CreatedAt, CompletedAt: r.CompletedAt, JobType: "run", Metadata: rest.Object("{}"),
		RequestConfig: RequestConfig{v.Speaker != "", v.Speaker, v.Argument, append([]string{}, v.Types...)}}
	if !r.IsDefault {
		run.ConversationID = &r.Conversation
	}
	if f := r.Failure(); f != nil {
		failed := ViewOf(r).failure(*f)
		run.Error = &failed
	}
	run.TTFTNS, run.TotalDurationNS = since(r.CreatedAt, r.FirstTokenAt), since(r.CreatedAt, r.CompletedAt)
	return run
}

// since returns the nanoseconds between two times; nil if the second is nil.
func since(from time.Time, to *time.Time) *int64 {
	if to == nil {
		return nil
	}
	ns := to.Sub(from).Nanoseconds()
	return &ns
}

// RunUsage counts the tokens of a run, in Letta's shape.
type RunUsage struct {
	PromptTokens      int         `json:"prompt_tokens"`
	CompletionTokens  int         `json:"completion_tokens"`
	TotalTokens       int         `json:"total_tokens"`
	PromptDetails     rest.Object `json:"prompt_tokens_details"`
	CompletionDetails rest.Object `json:"completion_tokens_details"`
}

// RunUsageOf returns the usage of a run in Letta's shape.
func RunUsageOf(u loop.Usage) RunUsage {
	in, out := tokenDetails(u.Cached, u.CacheWrite, u.Reasoning)
	return RunUsage{u.Prompt, u.Completion, u.Prompt + u.Completion, in, out}
}

// tokenDetails returns what prompt_tokens_details and completion_tokens_details say of some tokens.
func tokenDetails(cached, cacheWrite, reasoning int) (in, out rest.Object) {
	in, _ = json.Marshal(map[string]int{"cached_tokens": cached, "cache_read_tokens": cached,
		"cache_creation_tokens": cacheWrite}) // numbers can be marshaled
	out, _ = json.Marshal(map[string]int{"reasoning_tokens": reasoning})
	return in, out
}

// RunMetrics says how long a run took.
type RunMetrics struct {
	ID             string    `json:"id"`
	AgentID        string    `json:"agent_id"`
	RunStartNS     int64     `json:"run_start_ns"`
	RunNS          *int64    `json:"run_ns"`
	NumSteps       int       `json:"num_steps"`
	ToolsUsed      []string  `json:"tools_used" doc:"Ids of the tools that it called, without those of client_tools."`
	ProjectID      rest.Null `json:"project_id"`
	TemplateID     rest.Null `json:"template_id"`
	BaseTemplateID rest.Null `json:"base_template_id"`
}

// RunMetricsOf returns the metrics of a run. tools are the ids of the tools that it called.
func RunMetricsOf(r loop.Run, u loop.Usage, tools []string) RunMetrics {
	return RunMetrics{ID: r.ID, AgentID: r.AgentID, RunStartNS: r.CreatedAt.UnixNano(),
		RunNS: since(r.CreatedAt, r.CompletedAt), NumSteps: u.Steps, ToolsUsed: tools}
}

// CancelRuns names the runs to cancel.
type CancelRuns struct {
	RunIDs rest.Opt[[]string] `json:"run_ids,omitzero" doc:"The run of the default conversation if absent."`
	OfDefault
}

// RunFilter narrows a list of runs.
type RunFilter struct {
	AgentID  string   `query:"agent_id"`
	AgentIDs []string `query:"agent_ids,explode" deprecated:"true" doc:"Of these agents."`

	Statuses []string `query:"statuses,explode" enum:"created,running,completed,failed,cancelled" doc:"Of these."`

	Background   rest.Opt[bool] `query:"background" doc:"Only those of the background, or only the others."`
	StopReason   stopReason     `query:"stop_reason" doc:"Only those that ended for this reason."`
	Conversation string         `query:"conversation_id" doc:"Its id, or 'default' for the agent's default one."`
	Active       bool           `query:"active" doc:"Only those at work."`
	OrderBy      string         `query:"order_by" enum:"created_at"`
	Ascending    rest.Opt[bool] `query:"ascending" deprecated:"true" doc:"The order, where order is absent."`
}

// Filter returns the loop's filter.
func (f RunFilter) Filter() loop.Filter {
	filter := loop.Filter{AgentIDs: f.AgentIDs, Statuses: f.Statuses, StopReason: string(f.StopReason), Active: f.Active,
		Conversation: f.Conversation, Background: f.Background.Pointer()}
	if f.AgentID != "" {
		filter.AgentIDs = append(filter.AgentIDs, f.AgentID)
	}
	return filter
}
