package letta

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// The types of message items.
const (
	systemMessage          = "system_message"
	userMessage            = "user_message"
	assistantMessage       = "assistant_message"
	reasoningMessage       = "reasoning_message"
	hiddenReasoningMessage = "hidden_reasoning_message"
	toolCallMessage        = "tool_call_message"
	toolReturnMessage      = "tool_return_message"
	approvalRequestMessage = "approval_request_message"
	approvalAnswerMessage  = "approval_response_message"
	summaryMessage         = "summary_message"
	eventMessage           = "event_message"
)

// MessageItem is an item of a list of messages. A message of the log is listed as one or more items, which share the
// message's id; message_type tells them apart.
type MessageItem struct {
	value any // one of the structs in itemTypes
}

// itemTypes maps message_type to the type of a MessageItem's value.
var itemTypes = map[string]reflect.Type{
	systemMessage: reflect.TypeFor[SystemMessage](), userMessage: reflect.TypeFor[UserMessage](),
	assistantMessage: reflect.TypeFor[AssistantMessage](), reasoningMessage: reflect.TypeFor[ReasoningMessage](),
	hiddenReasoningMessage: reflect.TypeFor[HiddenReasoningMessage](), toolCallMessage: reflect.TypeFor[ToolCallMessage](),
	toolReturnMessage: reflect.TypeFor[ToolReturnMessage](), summaryMessage: reflect.TypeFor[SummaryMessage](),
	eventMessage: reflect.TypeFor[CompactionMessage](), approvalRequestMessage: reflect.TypeFor[ApprovalRequest](),
	approvalAnswerMessage: reflect.TypeFor[ApprovalResponse](),
}

// MarshalJSON implements json.Marshaler.
func (m MessageItem) MarshalJSON() ([]byte, error) { return json.Marshal(m.value) }

// Schema implements huma.SchemaProvider.
func (MessageItem) Schema(r rest.Registry) *rest.Schema {
	return rest.Union(r, "message_type", itemTypes)
}

// MessageHead holds the fields that all items share.
type MessageHead struct {
	ID             string  `json:"id" doc:"Of the message; all of its items have it."`
	Date           string  `json:"date" format:"date-time" doc:"When it was said, to the second."`
	MessageType    string  `json:"message_type"`
	Name           *string `json:"name"`
	OTID           *string `json:"otid" doc:"The client's own id, or one made for the item."`
	SenderID       *string `json:"sender_id"`
	StepID         *string `json:"step_id"`
	RunID          *string `json:"run_id"`
	SeqID          *int64  `json:"seq_id" doc:"Number of the item in the stream of a background run; else null."`
	IsErr          *bool   `json:"is_err" doc:"True, or null."`
	AgentID        string  `json:"agent_id"`
	ConversationID *string `json:"conversation_id" doc:"Null for the agent's default conversation."`
	Position       int     `json:"position" doc:"Of the message in its conversation, from 1 without a gap."`
	Seq            int64   `json:"seq" doc:"Of the message among the agent's events."`

	Purpose string `json:"purpose,omitempty" enum:"flush" doc:"Of a silent turn, which no prompt has; else absent."`

	Refused *recall.Refused `json:"refused,omitempty" doc:"Why it left the model's view, if a provider refused it."`

	Provenance *db.Provenance `json:"provenance,omitempty" doc:"Who stored it, as far as other fields do not say."`
}

// SystemMessage is an instruction.
type SystemMessage struct {
	MessageHead
	Content string `json:"content"`
}

// UserMessage is a message of a user.
type UserMessage struct {
	MessageHead
	Content Content `json:"content"`
}

// AssistantMessage is a text from the agent.
type AssistantMessage struct {
	MessageHead
	Content Content `json:"content"`
}

// ReasoningMessage is the reasoning of the agent's model.
type ReasoningMessage struct {
	MessageHead
	Reasoning string  `json:"reasoning"`
	Source    string  `json:"source" enum:"reasoner_model,non_reasoner_model"`
	Signature *string `json:"signature"`
}

// HiddenReasoningMessage is a reasoning that the model's provider does not reveal.
type HiddenReasoningMessage struct {
	MessageHead
	State           string  `json:"state" enum:"redacted,omitted"`
	HiddenReasoning *string `json:"hidden_reasoning"`
}

// ToolCallMessage holds the tool calls of one message.
type ToolCallMessage struct {
	MessageHead
	ToolCall  ToolCall   `json:"tool_call" deprecated:"true" doc:"The first of tool_calls."`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// ApprovalRequest holds calls that wait for the client: for its approval, or for the results of its own tools.
type ApprovalRequest struct {
	MessageHead
	ToolCall  ToolCall   `json:"tool_call" deprecated:"true" doc:"The first of tool_calls."`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// ApprovalResponse holds the client's answers to waiting calls. It is an item of the message with the calls' results.
type ApprovalResponse struct {
	MessageHead
	Approvals []ApprovalAnswer `json:"approvals"`
	Approve   *bool            `json:"approve" deprecated:"true" doc:"Of the first of approvals that has one."`
	RequestID *string          `json:"approval_request_id" deprecated:"true" doc:"Of the call that approve answers."`
	Reason    *string          `json:"reason" deprecated:"true"`
}

// ApprovalAnswer is a client's answer to a call: an approval or a denial, or the result of a tool that it ran.
type ApprovalAnswer struct{ value any }

// MarshalJSON implements json.Marshaler.
func (a ApprovalAnswer) MarshalJSON() ([]byte, error) { return json.Marshal(a.value) }

// Schema implements huma.SchemaProvider.
func (ApprovalAnswer) Schema(r rest.Registry) *rest.Schema {
	return rest.Union(r, "type", map[string]reflect.Type{"approval": reflect.TypeFor[ApprovalReturn](),
		"tool": reflect.TypeFor[ToolReturn]()})
}

// ApprovalReturn approves or denies a call.
type ApprovalReturn struct {
	Type       string  `json:"type" enum:"approval"`
	Approve    bool    `json:"approve"`
	ToolCallID string  `json:"tool_call_id"`
	Reason     *string `json:"reason"`
}

// ToolCall is a call of a tool.
type ToolCall struct {
	Name       string `json:"name"`
	Arguments  string `json:"arguments" doc:"JSON, as the model wrote it."`
	ToolCallID string `json:"tool_call_id"`
}

// ToolReturnMessage holds the tool results of one message.
type ToolReturnMessage struct {
	MessageHead
	ToolReturn  string       `json:"tool_return" deprecated:"true" doc:"The text of the first of tool_returns."`
	Status      string       `json:"status" enum:"success,error" deprecated:"true"`
	ToolCallID  string       `json:"tool_call_id" deprecated:"true"`
	Stdout      []string     `json:"stdout" deprecated:"true"`
	Stderr      []string     `json:"stderr" deprecated:"true"`
	ToolReturns []ToolReturn `json:"tool_returns"`
}

// SummaryMessage replaces messages that the model no longer sees.
type SummaryMessage struct {
	MessageHead
	Summary string      `json:"summary"`
	Stats   rest.Object `json:"compaction_stats" doc:"Its trigger; messages and tokens before and after."`
}

// CompactionMessage is the compaction that made a summary. It is listed only if the caller asks for its type.
type CompactionMessage struct {
	MessageHead
	EventType string      `json:"event_type" enum:"compaction"`
	EventData rest.Object `json:"event_data"`
}

// ToolReturn is the result of a tool.
type ToolReturn struct {
	Type       string       `json:"type" enum:"tool"`
	ToolCallID string       `json:"tool_call_id"`
	Status     string       `json:"status" enum:"success,error"`
	ToolReturn Content      `json:"tool_return"`
	Stdout     []string     `json:"stdout"`
	Stderr     []string     `json:"stderr"`
	Orphan     bool         `json:"orphan,omitempty" doc:"It has no call, and a model never sees it."`
	Clip       *ClippedText `json:"clip,omitempty" doc:"Where the whole of it is, if this is only its beginning."`
}

// ClippedText describes a text that was shortened: the message holds only its beginning.
type ClippedText struct {
	ID     string `json:"id" doc:"To be expanded."`
	Chars  int    `json:"chars"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Shown  int    `json:"shown" doc:"How many bytes of it the log has."`
}

// Content is a list of texts and images. Its JSON is a string if it is empty or a single text, otherwise an array.
type Content []ContentPart

// MarshalJSON implements json.Marshaler.
func (c Content) MarshalJSON() ([]byte, error) {
	switch {
	case len(c) == 0:
		return []byte(`""`), nil
	case len(c) == 1 && c[0].Type == "text":
		return json.Marshal(*c[0].Text)
	}
	return json.Marshal([]ContentPart(c))
}

// Schema implements huma.SchemaProvider.
func (Content) Schema(r rest.Registry) *rest.Schema {
	return rest.OneOf(r, reflect.TypeFor[string](), reflect.TypeFor[[]ContentPart]())
}

// ContentPart is a part of a message. Its type decides which fields are set.
type ContentPart struct {
	Type             partType    `json:"type"`
	Text             *string     `json:"text,omitempty"`
	Source           rest.Object `json:"source,omitempty"`
	Reasoning        *string     `json:"reasoning,omitempty"`
	IsNative         *bool       `json:"is_native,omitempty"`
	Signature        *string     `json:"signature,omitempty"`
	Data             *string     `json:"data,omitempty"`
	ID               *string     `json:"id,omitempty"`
	Summary          any         `json:"summary,omitempty"`
	EncryptedContent *string     `json:"encrypted_content,omitempty"`
}

type partType string

func (partType) Schema(rest.Registry) *rest.Schema {
	return rest.Enum("text", "image", "reasoning", "redacted_reasoning", "omitted_reasoning", "summarized_reasoning")
}

func textPart(text string) ContentPart { return ContentPart{Type: "text", Text: &text} }

// Texts joins the texts of a content with newlines.
func (c Content) Texts() string {
	var all []string
	for _, p := range c {
		if p.Text != nil {
			all = append(all, *p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// toTheSecond formats a time as Letta formats the time of a message.
func toTheSecond(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05+00:00") }
