package letta

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// The types of items that occur only in the streams and answers of runs.
const (
	pingItem  = "ping"
	errorItem = "error_message"
	stopItem  = "stop_reason"
	usageItem = "usage_statistics"
)

// Answer is the whole answer of a run.
type Answer struct {
	Messages   []MessageItem `json:"messages" doc:"What the run made, in order."`
	StopReason StopReason    `json:"stop_reason"`
	Usage      Usage         `json:"usage"`
	RunID      string        `json:"run_id"`
	Error      *RunError     `json:"error,omitempty" doc:"Why the run failed, if it did."`
	Logprobs   rest.Null     `json:"logprobs"`
	Turns      rest.Null     `json:"turns"`
}

// StopReason says why a run ended.
type StopReason struct {
	MessageType string `json:"message_type" enum:"stop_reason"`
	StopReason  string `json:"stop_reason" enum:"end_turn,error,llm_api_error,invalid_llm_response,invalid_tool_call,max_steps,max_tokens_exceeded,no_tool_call,tool_rule,cancelled,insufficient_credits,requires_approval,context_window_overflow_in_system_prompt"` //nolint:lll // a tag is one line
	SeqID       *int64 `json:"seq_id,omitempty"`
}

// Usage counts the tokens of a run.
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

// RunError says why a run failed.
type RunError struct {
	MessageType string `json:"message_type" enum:"error_message"`
	RunID       string `json:"run_id"`
	ErrorType   string `json:"error_type"`
	Message     string `json:"message"`
	Detail      string `json:"detail,omitempty" doc:"The provider's own words, redacted, where it failed."`
	SeqID       *int64 `json:"seq_id,omitempty"`
}

// Ping keeps a stream alive.
type Ping struct {
	ID          string `json:"id"`
	Date        string `json:"date"`
	MessageType string `json:"message_type"`
	RunID       string `json:"run_id"`
	SeqID       *int64 `json:"seq_id"`

	// Withdrawn is the id of a message that was sent in part and is not in the log.
	Withdrawn string `json:"withdrawn_message_id,omitempty"`

	// Dropped are the ids of calls that were sent in part and are not in their message.
	Dropped []string `json:"withdrawn_tool_call_ids,omitempty"`
}

// PingOf returns a ping of a run.
func PingOf(r loop.Run) Ping {
	return Ping{ID: "ping-" + uuid.NewString(), Date: toTheSecond(time.Now()), MessageType: pingItem, RunID: r.ID}
}

// RunView turns the events of a run into items, as the run's client wants them.
type RunView struct {
	run     loop.Run
	options ItemOptions
}

// ViewOf returns the view for a run's client.
func ViewOf(r loop.Run) RunView {
	var v view
	_ = json.Unmarshal(r.Options.View, &v) // SendMessages wrote the view
	return RunView{r, ItemOptions{Types: v.Types, Speaker: v.Speaker, Argument: v.Argument, Made: true}}
}

// Items returns the items for an event. If deltas of a message were sent, it leaves out the items that they covered.
func (v RunView) Items(e loop.Event) []any {
	switch {
	case e.Delta != nil:
		return v.delta(*e.Delta)
	case e.Withdrawn != "" || len(e.Dropped) > 0:
		p := PingOf(v.run)
		p.Withdrawn, p.Dropped = e.Withdrawn, e.Dropped
		return []any{p}
	case e.End != nil:
		return v.end(*e.End)
	case e.Streamed && !v.holds():
		return nil
	}
	var all []any
	for _, item := range v.options.Items(*e.Message) {
		if r, ok := item.value.(ReasoningMessage); e.Streamed && ok && r.Source == fromReasoner {
			continue // its pieces were sent
		}
		all = append(all, item)
	}
	return all
}

// holds reports whether texts and calls are sent whole, because only the whole answer says which texts are thoughts and
// which calls are texts.
func (v RunView) holds() bool { return v.run.Options.Speaks }

func (v RunView) wants(kind string) bool {
	return len(v.options.Types) == 0 || slices.Contains(v.options.Types, kind)
}

// ToolCallDelta is a piece of a tool call.
type ToolCallDelta struct {
	Name       *string `json:"name"`
	Arguments  *string `json:"arguments"`
	ToolCallID *string `json:"tool_call_id"`
}

// ToolCallPiece is a message with a piece of a tool call.
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
	if !v.wants(kind) || kind != reasoningMessage && v.holds() {
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
		return []any{ReasoningMessage{h, d.Text, fromReasoner, nil}}
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
	return RunError{MessageType: errorItem, RunID: v.run.ID, ErrorType: f.Type, Message: f.Text, Detail: f.Detail}
}

func (v RunView) usage(u loop.Usage) Usage {
	return Usage{MessageType: usageItem, PromptTokens: u.Prompt, CompletionTokens: u.Completion,
		TotalTokens: u.Prompt + u.Completion, StepCount: u.Steps, RunIDs: []string{v.run.ID}, CachedTokens: &u.Cached,
		CacheWriteTokens: &u.CacheWrite, ReasoningTokens: &u.Reasoning, ContextTokens: &u.Context}
}

// Answer returns the whole answer of a run. events are all of the run's events; the last is its end.
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

// InterruptionOf returns the error for a stream that ends although its run goes on later.
func InterruptionOf(r loop.Run) RunError {
	return ViewOf(r).failure(loop.Failure{Type: loop.Interrupted, Text: loop.InterruptedText(r.ID)})
}

// OutageOf returns the error for a stream that ends because the database does not answer. The run goes on later.
func OutageOf(r loop.Run) RunError {
	return ViewOf(r).failure(loop.Failure{Type: "database_unavailable", Text: loop.OutageText(r.ID)})
}

// DeletionOf returns the error for a stream that ends because the record of its run was deleted.
func DeletionOf(r loop.Run) RunError {
	return ViewOf(r).failure(loop.Failure{Type: "deleted", Text: "The record of run " + r.ID + " was deleted, and its " +
		"stream with it. GET /v1/agents/" + r.AgentID + "/messages has what it said"})
}

// IsError reports whether an item is the error of a failed run. Streams send that error as a named event.
func IsError(item any) bool {
	_, isError := item.(RunError)
	return isError
}

// IsErrorItem reports whether an item, in JSON, is the error of a failed run.
func IsErrorItem(item json.RawMessage) bool {
	var head struct {
		MessageType string `json:"message_type"`
	}
	return json.Unmarshal(item, &head) == nil && head.MessageType == errorItem
}

// Numbered returns the items for an event of a background run, numbered from seq. It serves as the Render of a
// loop.Loop.
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

// withSeq adds a number to an item.
func withSeq(item json.RawMessage, seq int64) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item
	}
	fields["seq_id"], _ = json.Marshal(seq) // a number can be marshaled
	raw, _ := json.Marshal(fields)          // the fields are parsed JSON
	return raw
}

// Attach is a request for the stream of a background run.
type Attach struct {
	AgentID rest.Opt[string]  `json:"agent_id,omitzero" doc:"The agent of a conversation named 'default'."`
	RunID   rest.Opt[string]  `json:"run_id,omitzero" doc:"Of the conversation; the active one if absent."`
	OTID    rest.Opt[string]  `json:"otid,omitzero" doc:"Of a message of the run, in place of its id."`
	After   rest.Opt[int]     `json:"starting_after,omitzero" doc:"The number of the last item that the client has."`
	Pings   rest.Opt[bool]    `json:"include_pings,omitzero" doc:"Keep the stream alive with pings."`
	Poll    rest.Opt[float64] `json:"poll_interval,omitzero" doc:"Seconds between two looks for items; 0.1 if absent."`
	Batch   rest.Opt[int]     `json:"batch_size,omitzero" doc:"Items that are read at once; 100 if absent."`
}
