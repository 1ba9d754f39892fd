package letta

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/loop"
	"github.com/loci-memory/loci/server/rest"
)

// The types of items that only streams and answers of runs have.
const (
	pingItem  = "ping"
	errorItem = "error_message"
	stopItem  = "stop_reason"
	usageItem = "usage_statistics"
)

// Answer is what an agent did for a request.
type Answer struct {
	Messages   []MessageItem `json:"messages" doc:"What the run made, in order."`
	StopReason StopReason    `json:"stop_reason"`
	Usage      Usage         `json:"usage"`
	RunID      string        `json:"run_id"`
	Error      *RunError     `json:"error,omitempty" doc:"Why the run failed, if it did."`
	Logprobs   rest.Null     `json:"logprobs"`
	Turns      rest.Null     `json:"turns"`
}

// StopReason is why a run ended.
type StopReason struct {
	MessageType string `json:"message_type" enum:"stop_reason"`
	StopReason  string `json:"stop_reason" enum:"end_turn,error,llm_api_error,invalid_llm_response,invalid_tool_call,max_steps,max_tokens_exceeded,no_tool_call,tool_rule,cancelled,insufficient_credits,requires_approval,context_window_overflow_in_system_prompt"` //nolint:lll // a tag is one line
	SeqID       *int64 `json:"seq_id,omitempty"`
}

// Usage is what the models of a run counted.
type Usage struct {
	MessageType      string   `json:"message_type" enum:"usage_statistics"`
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	TotalTokens      int      `json:"total_tokens"`
	StepCount        int      `json:"step_count"`
	RunIDs           []string `json:"run_ids"`
	CachedTokens     *int     `json:"cached_input_tokens"`
	CacheWriteTokens *int     `json:"cache_write_tokens"`
	ReasoningTokens  *int     `json:"reasoning_tokens"`
	ContextTokens    *int     `json:"context_tokens"`
	SeqID            *int64   `json:"seq_id,omitempty"`
}

// RunError is why a run failed.
type RunError struct {
	MessageType string `json:"message_type" enum:"error_message"`
	RunID       string `json:"run_id"`
	ErrorType   string `json:"error_type"`
	Message     string `json:"message"`
	SeqID       *int64 `json:"seq_id,omitempty"`
}

// Ping keeps a stream alive.
type Ping struct {
	ID          string `json:"id"`
	Date        string `json:"date"`
	MessageType string `json:"message_type"`
	RunID       string `json:"run_id"`
	SeqID       *int64 `json:"seq_id"`
}

// PingOf returns a ping of a run.
func PingOf(r loop.Run) Ping {
	return Ping{ID: "ping-" + uuid.NewString(), Date: toTheSecond(time.Now()), MessageType: pingItem, RunID: r.ID}
}

// RunView shows the events of a run as its client wants them.
type RunView struct {
	run     loop.Run
	options ItemOptions
}

// ViewOf returns the view of a run's client.
func ViewOf(r loop.Run) RunView {
	var v view
	_ = json.Unmarshal(r.Options.View, &v) // it was made by SendMessages
	return RunView{r, ItemOptions{Types: v.Types, Speaker: v.Speaker, Argument: v.Argument}}
}

// Items returns the items of an event. A message whose deltas were sent has only those that had none.
func (v RunView) Items(e loop.Event) []any {
	switch {
	case e.Delta != nil:
		return v.delta(*e.Delta)
	case e.End != nil:
		return v.end(*e.End)
	case e.Streamed:
		return nil
	}
	o := v.options
	o.Asked = e.Asked
	var all []any
	for _, item := range o.Items(*e.Message) {
		all = append(all, item)
	}
	return all
}

func (v RunView) wants(kind string) bool {
	return len(v.options.Types) == 0 || slices.Contains(v.options.Types, kind)
}

// ToolCallDelta is a piece of a call of a tool.
type ToolCallDelta struct {
	Name       *string `json:"name"`
	Arguments  *string `json:"arguments"`
	ToolCallID *string `json:"tool_call_id"`
}

// ToolCallPiece is a message with a piece of a call.
type ToolCallPiece struct {
	MessageHead
	ToolCall  ToolCallDelta `json:"tool_call"`
	ToolCalls ToolCallDelta `json:"tool_calls"`
}

func (v RunView) delta(d loop.Delta) []any {
	kind, place := assistantMessage, 1
	switch {
	case d.Kind == recall.Reasoning:
		kind, place = reasoningMessage, 0
	case d.Kind == recall.ToolCall && d.Asked:
		kind, place = approvalRequestMessage, 3
	case d.Kind == recall.ToolCall:
		kind, place = toolCallMessage, 2
	}
	if !v.wants(kind) {
		return nil
	}
	otid := itemOTID(d.MessageID, place)
	h := MessageHead{ID: d.MessageID, Date: toTheSecond(d.At), MessageType: kind, OTID: &otid, StepID: &d.StepID,
		RunID: &v.run.ID, AgentID: v.run.AgentID}
	if !v.run.IsDefault {
		h.ConversationID = &v.run.Conversation
	}
	switch kind {
	case reasoningMessage:
		return []any{ReasoningMessage{h, d.Text, "reasoner_model", nil}}
	case assistantMessage:
		return []any{AssistantMessage{h, Content{textPart(d.Text)}}}
	}
	piece := ToolCallDelta{Name: given(d.Name), Arguments: &d.Text, ToolCallID: &d.CallID}
	return []any{ToolCallPiece{h, piece, piece}}
}

func (v RunView) end(e loop.End) []any {
	all := []any{StopReason{MessageType: stopItem, StopReason: e.StopReason}}
	if e.Failure != nil {
		return append(all, v.failure(*e.Failure))
	}
	return append(all, v.usage(e.Usage))
}

func (v RunView) failure(f loop.Failure) RunError {
	return RunError{MessageType: errorItem, RunID: v.run.ID, ErrorType: f.Type, Message: f.Text}
}

func (v RunView) usage(u loop.Usage) Usage {
	return Usage{MessageType: usageItem, PromptTokens: u.Prompt, CompletionTokens: u.Completion,
		TotalTokens: u.Prompt + u.Completion, StepCount: u.Steps, RunIDs: []string{v.run.ID}, CachedTokens: &u.Cached,
		CacheWriteTokens: &u.CacheWrite, ReasoningTokens: &u.Reasoning, ContextTokens: &u.Context}
}

// Answer returns the answer that the events of a run make, the last of which is its end.
func (v RunView) Answer(events []loop.Event) Answer {
	a := Answer{Messages: []MessageItem{}, RunID: v.run.ID}
	for _, e := range events {
		if e.End == nil {
			for _, item := range v.Items(e) {
				a.Messages = append(a.Messages, item.(MessageItem))
			}
			continue
		}
		a.StopReason, a.Usage = StopReason{MessageType: stopItem, StopReason: e.End.StopReason}, v.usage(e.End.Usage)
		if e.End.Failure != nil {
			failed := v.failure(*e.End.Failure)
			a.Error = &failed
		}
	}
	return a
}

// IsError reports whether an item is the error of a failed run, which streams send under a name.
func IsError(item any) bool {
	_, is := item.(RunError)
	return is
}

// Numbered returns the items of an event of a background run, the first of which has the number seq. It is loop.Loop's
// Render.
func Numbered(r loop.Run, e loop.Event, seq int64) (all []json.RawMessage) {
	for i, item := range ViewOf(r).Items(e) {
		raw, err := json.Marshal(item)
		if err != nil {
			panic("letta: an item is no JSON: " + err.Error()) // items are structs of texts and parsed JSON
		}
		all = append(all, withSeq(raw, seq+int64(i)))
	}
	return all
}

// withSeq returns an item with a number.
func withSeq(item json.RawMessage, seq int64) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item
	}
	fields["seq_id"], _ = json.Marshal(seq) // a number
	raw, _ := json.Marshal(fields)          // parsed JSON
	return raw
}

// Run is the work on a request, in Letta's shape.
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

// RequestConfig is how the client of a run wants to see its messages.
type RequestConfig struct {
	Speech     bool     `json:"use_assistant_message"`
	SpeechTool string   `json:"assistant_message_tool_name"`
	SpeechArg  string   `json:"assistant_message_tool_kwarg"`
	Types      []string `json:"include_return_message_types"`
}

// RunOf returns a run in Letta's shape.
func RunOf(r loop.Run) Run {
	var v view
	_ = json.Unmarshal(r.Options.View, &v) // it was made by SendMessages
	shown := Run{ID: r.ID, AgentID: r.AgentID, Status: r.Status, StopReason: r.StopReason, Background: r.Background,
		CreatedAt: r.CreatedAt, CompletedAt: r.CompletedAt, JobType: "run", Metadata: rest.Object("{}"),
		RequestConfig: RequestConfig{v.Speaker != "", v.Speaker, v.Argument, append([]string{}, v.Types...)}}
	if !r.IsDefault {
		shown.ConversationID = &r.Conversation
	}
	if r.ErrorType != nil {
		failed := ViewOf(r).failure(loop.Failure{Type: *r.ErrorType, Text: *r.Error})
		shown.Error = &failed
	}
	shown.TTFTNS, shown.TotalDurationNS = since(r.CreatedAt, r.FirstTokenAt), since(r.CreatedAt, r.CompletedAt)
	return shown
}

// since returns the nanoseconds between two times, nil without the second.
func since(from time.Time, to *time.Time) *int64 {
	if to == nil {
		return nil
	}
	ns := to.Sub(from).Nanoseconds()
	return &ns
}

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
	shown := RunStep{ID: s.ID, RunID: s.RunID, AgentID: s.AgentID, ProviderName: s.Provider, ProviderCategory: "base",
		Model: s.Model, ModelHandle: s.Handle, ContextWindowLimit: s.ContextWindow, PromptTokens: s.Prompt,
		CompletionTokens: s.Completion, TotalTokens: s.Prompt + s.Completion, CachedTokens: s.Cached,
		CacheWriteTokens: s.CacheWrite, ReasoningTokens: s.Reasoning, StopReason: s.StopReason, Status: s.Status,
		ErrorType: s.ErrorType, Feedback: s.Feedback, Tags: append([]string{}, s.Tags...), Messages: []InternalMessage{},
		CreatedAt: s.CreatedAt}
	if s.Error != nil {
		shown.ErrorData, _ = json.Marshal(map[string]string{"message": *s.Error}) // a text
	}
	return shown
}

// RunUsage is what the models of a run counted, in Letta's shape.
type RunUsage struct {
	PromptTokens      int         `json:"prompt_tokens"`
	CompletionTokens  int         `json:"completion_tokens"`
	TotalTokens       int         `json:"total_tokens"`
	PromptDetails     rest.Object `json:"prompt_tokens_details"`
	CompletionDetails rest.Object `json:"completion_tokens_details"`
}

// RunUsageOf returns the usage of a run in Letta's shape.
func RunUsageOf(u loop.Usage) RunUsage {
	in, _ := json.Marshal(map[string]int{"cached_tokens": u.Cached, "cache_read_tokens": u.Cached,
		"cache_creation_tokens": u.CacheWrite}) // numbers
	out, _ := json.Marshal(map[string]int{"reasoning_tokens": u.Reasoning})
	return RunUsage{u.Prompt, u.Completion, u.Prompt + u.Completion, in, out}
}

// RunMetrics is how long a run took.
type RunMetrics struct {
	ID             string    `json:"id"`
	AgentID        string    `json:"agent_id"`
	RunStartNS     int64     `json:"run_start_ns"`
	RunNS          *int64    `json:"run_ns"`
	NumSteps       int       `json:"num_steps"`
	ToolsUsed      []string  `json:"tools_used"`
	ProjectID      rest.Null `json:"project_id"`
	TemplateID     rest.Null `json:"template_id"`
	BaseTemplateID rest.Null `json:"base_template_id"`
}

// RunMetricsOf returns the metrics of a run with some messages.
func RunMetricsOf(r loop.Run, u loop.Usage, messages []recall.Message) RunMetrics {
	m := RunMetrics{ID: r.ID, AgentID: r.AgentID, RunStartNS: r.CreatedAt.UnixNano(),
		RunNS: since(r.CreatedAt, r.CompletedAt), NumSteps: u.Steps, ToolsUsed: []string{}}
	for _, message := range messages {
		for _, p := range message.Content {
			if p.Type == recall.ToolCall && !slices.Contains(m.ToolsUsed, p.Name) {
				m.ToolsUsed = append(m.ToolsUsed, p.Name)
			}
		}
	}
	return m
}

// StepMetrics is how long a step took.
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

// IsErrorItem reports whether an item in JSON is the error of a failed run.
func IsErrorItem(item json.RawMessage) bool {
	var head struct {
		MessageType string `json:"message_type"`
	}
	return json.Unmarshal(item, &head) == nil && head.MessageType == errorItem
}

// CancelRuns names the runs to cancel.
type CancelRuns struct {
	RunIDs rest.Opt[[]string] `json:"run_ids,omitzero" doc:"The run of the default conversation if absent."`
}

// Attach asks for the stream of a background run.
type Attach struct {
	AgentID rest.Opt[string]  `json:"agent_id,omitzero" doc:"The agent of a conversation named 'default'."`
	RunID   rest.Opt[string]  `json:"run_id,omitzero" doc:"Of the conversation; the active one if absent."`
	OTID    rest.Opt[string]  `json:"otid,omitzero" doc:"Of a message of the run, in place of its id."`
	After   rest.Opt[int]     `json:"starting_after,omitzero" doc:"The number of the last item that the client has."`
	Pings   rest.Opt[bool]    `json:"include_pings,omitzero" doc:"Keep the stream alive with pings."`
	Poll    rest.Opt[float64] `json:"poll_interval,omitzero" doc:"Seconds between two looks for items; 0.1 if absent."`
	Batch   rest.Opt[int]     `json:"batch_size,omitzero" doc:"Items that are read at once; 100 if absent."`
}

// Feedback is what a client thinks of a step.
type Feedback struct {
	Feedback rest.Opt[string]   `json:"feedback,omitzero" doc:"positive or negative."`
	Tags     rest.Opt[[]string] `json:"tags,omitzero" doc:"Replace those of the step."`
}

// RunFilter narrows a list of runs.
type RunFilter struct {
	AgentID      string         `query:"agent_id"`
	AgentIDs     []string       `query:"agent_ids,explode" deprecated:"true" doc:"Of these agents."`
	Statuses     []string       `query:"statuses,explode" doc:"created, running, completed, failed, cancelled."`
	Background   rest.Opt[bool] `query:"background" doc:"Only those of the background, or only the others."`
	StopReason   string         `query:"stop_reason" doc:"Only those that ended for this reason."`
	Conversation string         `query:"conversation_id"`
	Active       bool           `query:"active" doc:"Only those at work."`
	OrderBy      string         `query:"order_by" enum:"created_at"`
	Ascending    rest.Opt[bool] `query:"ascending" deprecated:"true" doc:"Ignored: order has a default."`
}

// Filter returns the filter in the loop's terms.
func (f RunFilter) Filter() loop.Filter {
	of := loop.Filter{AgentIDs: f.AgentIDs, Statuses: f.Statuses, StopReason: f.StopReason, Active: f.Active,
		Conversation: f.Conversation, Background: f.Background.Pointer()}
	if f.AgentID != "" {
		of.AgentIDs = append(of.AgentIDs, f.AgentID)
	}
	return of
}

// StepFilter narrows a list of steps.
type StepFilter struct {
	AgentID     string         `query:"agent_id"`
	Model       string         `query:"model"`
	From        string         `query:"start_date"`
	To          string         `query:"end_date"`
	Tags        []string       `query:"tags,explode"`
	Feedback    string         `query:"feedback" doc:"positive or negative."`
	HasFeedback rest.Opt[bool] `query:"has_feedback" doc:"Only those with feedback, or only the others."`
	OrderBy     string         `query:"order_by" enum:"created_at"`
}

// Filter returns the filter in the loop's terms.
func (f StepFilter) Filter() (of loop.StepFilter, err error) {
	of = loop.StepFilter{AgentID: f.AgentID, Model: f.Model, Tags: f.Tags, Feedback: f.Feedback,
		HasFeedback: f.HasFeedback.Pointer()}
	if of.From, err = recall.ParseStart(f.From, time.UTC); err != nil {
		return of, rest.Unprocessable("query.start_date", "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	if of.To, err = recall.ParseEnd(f.To, time.UTC); err != nil {
		return of, rest.Unprocessable("query.end_date", "expected a time in ISO 8601, such as 2026-01-31T12:30:00Z")
	}
	return of, nil
}
