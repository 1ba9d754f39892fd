package letta

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// InternalMessage is a message of the log in the shape that Letta's database uses.
type InternalMessage struct {
	ID                string           `json:"id"`
	Role              string           `json:"role" enum:"assistant,user,tool,function,system,approval,summary"`
	Content           []ContentPart    `json:"content"`
	AgentID           string           `json:"agent_id"`
	ConversationID    *string          `json:"conversation_id"`
	CreatedAt         time.Time        `json:"created_at"`
	UpdatedAt         rest.Null        `json:"updated_at"`
	Model             *string          `json:"model"`
	Name              *string          `json:"name"`
	ToolCalls         []FunctionCall   `json:"tool_calls"`
	ToolCallID        *string          `json:"tool_call_id"`
	ToolReturns       []FunctionReturn `json:"tool_returns"`
	StepID            *string          `json:"step_id"`
	RunID             *string          `json:"run_id"`
	OTID              *string          `json:"otid"`
	SenderID          *string          `json:"sender_id"`
	GroupID           *string          `json:"group_id"`
	BatchItemID       rest.Null        `json:"batch_item_id"`
	IsErr             *bool            `json:"is_err"`
	Approve           *bool            `json:"approve"`
	Approvals         []ApprovalAnswer `json:"approvals"`
	ApprovalRequestID rest.Null        `json:"approval_request_id"`
	DenialReason      *string          `json:"denial_reason"`
	CreatedByID       rest.Null        `json:"created_by_id"`
	LastUpdatedByID   rest.Null        `json:"last_updated_by_id"`
	Position          int              `json:"position" doc:"In its conversation, from 1 without a gap."`
	Seq               int64            `json:"seq" doc:"Among the agent's events."`
}

// FunctionCall is a tool call in the form of OpenAI's API.
type FunctionCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type" enum:"function"`
	Function Function `json:"function"`
}

// Function is a called tool with its arguments, in JSON.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// FunctionReturn is the result of a tool.
type FunctionReturn struct {
	Status     string   `json:"status" enum:"success,error"`
	ToolCallID string   `json:"tool_call_id"`
	Response   Content  `json:"func_response"`
	Stdout     []string `json:"stdout"`
	Stderr     []string `json:"stderr"`
}

// InternalMessageOf returns a message of the log as an InternalMessage.
func InternalMessageOf(m recall.Message) InternalMessage {
	internal := InternalMessage{ID: m.ID, Role: string(m.Role), Content: []ContentPart{}, AgentID: m.AgentID,
		ConversationID: m.ConversationID, CreatedAt: m.CreatedAt, Model: m.Model, Name: m.Name, StepID: m.StepID,
		RunID: m.RunID, OTID: m.OTID, SenderID: m.SenderID, GroupID: m.GroupID, Position: m.Position, Seq: m.Seq}
	if m.IsErr {
		internal.IsErr = &m.IsErr
	}
	if asksOnly(m) {
		internal.Role = "approval"
	}
	a := ApprovalsOf(m)
	internal.Approve, internal.Approvals, internal.DenialReason = a.Approve, a.Approvals, a.Reason
	for _, p := range m.Content {
		switch p.Type {
		case recall.ToolCall:
			internal.ToolCalls = append(internal.ToolCalls, FunctionCall{p.CallID, "function", Function{p.Name, p.Input}})
		case recall.ToolReturn:
			internal.ToolReturns = append(internal.ToolReturns, FunctionReturn{StatusOf(p), p.CallID, returned(p), p.Stdout,
				p.Stderr})
			internal.Content = append(internal.Content, textPart(p.Text))
		default:
			internal.Content = append(internal.Content, internalPart(p))
		}
	}
	if len(internal.ToolReturns) > 0 {
		internal.ToolCallID = &internal.ToolReturns[0].ToolCallID
	}
	return internal
}

// asksOnly reports whether a message has calls and left all of them to the client.
func asksOnly(m recall.Message) (waiting bool) {
	for _, p := range m.Content {
		if p.Type == recall.ToolCall {
			if waiting = p.Approval == recall.Asked; !waiting {
				return false
			}
		}
	}
	return waiting
}

// internalPart returns a text, an image or a reasoning as a ContentPart.
func internalPart(p recall.Part) ContentPart {
	c := ContentPart{Type: partType(p.Type), Signature: given(p.Signature)}
	switch p.Type {
	case recall.Image:
		c.Source = rest.Object(p.Source)
	case recall.Reasoning:
		c.Reasoning, c.IsNative = &p.Text, &p.Native
	case recall.RedactedReasoning:
		c.Data = &p.Data
	case recall.OmittedReasoning, recall.AnthropicBlock, recall.ResponsesItem:
		c.Type = partType(recall.OmittedReasoning)
	case recall.SummarizedReasoning:
		c.ID, c.EncryptedContent, c.Summary = &p.CallID, given(p.Data), summaryOf(p)
	default:
		c.Text = &p.Text
	}
	return c
}

// summaryOf returns the pieces of a reasoning's summary.
func summaryOf(p recall.Part) any {
	if json.Valid(p.Summary) {
		return p.Summary
	}
	return []map[string]any{{"index": 0, "text": p.Text}}
}
