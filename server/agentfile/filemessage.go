package agentfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// fileMessage is a message in a file.
type fileMessage struct {
	ID          string       `json:"id"`
	Role        string       `json:"role"`
	Content     fileContent  `json:"content"`
	Name        *string      `json:"name"`
	OTID        *string      `json:"otid"`
	SenderID    *string      `json:"sender_id"`
	GroupID     *string      `json:"group_id"`
	Model       *string      `json:"model"`
	ToolCalls   []fileCall   `json:"tool_calls"`
	ToolCallID  *string      `json:"tool_call_id"`
	ToolReturns []fileReturn `json:"tool_returns"`
	Approve     *bool        `json:"approve"`
	RequestID   *string      `json:"approval_request_id"`
	Approvals   []fileReturn `json:"approvals"`
	CreatedAt   *fileTime    `json:"created_at"`
}

type fileCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// fileReturn is the result of a tool. Its text is called func_response by Letta's servers, and tool_return by Letta's
// clients.
type fileReturn struct {
	Type       string      `json:"type"`
	ToolCallID *string     `json:"tool_call_id"`
	Approve    *bool       `json:"approve"`
	Status     string      `json:"status"`
	Response   fileContent `json:"func_response"`
	Return     fileContent `json:"tool_return"`
	Stdout     []string    `json:"stdout"`
	Stderr     []string    `json:"stderr"`
}

// fileTime is a time, with or without an offset from UTC.
type fileTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *fileTime) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			t.Time = parsed
			return nil
		}
	}
	return fmt.Errorf("%.50q is no time in ISO 8601", text)
}

// fileContent is the content of a message: a text, or a list of parts.
type fileContent []filePart

type filePart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Source     json.RawMessage `json:"source"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Input      json.RawMessage `json:"input"`
	ToolCallID string          `json:"tool_call_id"`
	Content    json.RawMessage `json:"content"`
	IsError    bool            `json:"is_error"`
	Reasoning  string          `json:"reasoning"`
	IsNative   bool            `json:"is_native"`
	Signature  string          `json:"signature"`
	Data       string          `json:"data"`
	Summary    json.RawMessage `json:"summary"`
	Encrypted  string          `json:"encrypted_content"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *fileContent) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*c = fileContent{{Type: "text"}}
		return json.Unmarshal(raw, &(*c)[0].Text)
	}
	return json.Unmarshal(raw, (*[]filePart)(c))
}

// returned returns the texts and images of a content.
func (c fileContent) returned() (all []recall.Part) {
	for _, p := range c {
		switch {
		case p.Type == "image":
			all = append(all, recall.Part{Type: recall.Image, Source: p.Source})
		case p.Text != "":
			all = append(all, recall.Part{Type: recall.Text, Text: p.Text})
		}
	}
	return all
}

// draft returns a message to append, or a sentence that says why it is left out. A draft of role tool without content
// is to be skipped.
func (m fileMessage) draft() (d recall.Draft, leftOut string, err error) {
	d = recall.Draft{Role: recall.Role(m.Role), Name: m.Name, OTID: m.OTID, SenderID: m.SenderID, GroupID: m.GroupID,
		Model: m.Model}
	if m.CreatedAt != nil {
		d.CreatedAt = new(recall.Storable(m.CreatedAt.Time))
	}
	switch {
	case m.Role == approvalRole && len(m.ToolCalls) > 0:
		d.Role = recall.Assistant
	case m.Role == approvalRole || m.Role == string(recall.Tool):
		d.Role = recall.Tool
		return m.results(d)
	}
	if m.Content == nil && len(m.ToolCalls) == 0 {
		return recall.Draft{Role: recall.Tool}, "It has no content.", nil
	}
	d.Content, err = m.parts()
	return d, "", err
}

// parts returns the content and the calls of a message.
func (m fileMessage) parts() (parts []recall.Part, err error) {
	for k, p := range m.Content {
		part, err := p.part()
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", k, err)
		}
		parts = append(parts, part)
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, recall.Part{Type: recall.ToolCall, CallID: c.ID, Name: c.Function.Name,
			Input: c.Function.Arguments, Approval: m.asked()})
	}
	return parts, nil
}

func (p filePart) part() (recall.Part, error) {
	part := recall.Part{Type: recall.PartType(p.Type), Signature: p.Signature}
	switch part.Type {
	case recall.Text:
		part.Text = p.Text
	case recall.Image:
		if len(p.Source) == 0 || p.Source[0] != '{' {
			return part, db.Invalid("an image has no source")
		}
		part.Source = p.Source
	case recall.ToolCall:
		part.CallID, part.Name, part.Input = p.ID, p.Name, string(p.Input)
	case recall.ToolReturn:
		var content fileContent
		if len(p.Content) > 0 {
			if err := json.Unmarshal(p.Content, &content); err != nil {
				return part, db.Invalid("content: %v", err)
			}
		}
		part.CallID, part.IsError = p.ToolCallID, p.IsError
		part.SetReturned(content.returned())
	case recall.Reasoning:
		part.Text, part.Native = p.Reasoning, p.IsNative
	case recall.RedactedReasoning:
		part.Data = p.Data
	case recall.OmittedReasoning:
	case recall.SummarizedReasoning:
		var pieces []struct{ Text string }
		if len(p.Summary) > 0 {
			if err := json.Unmarshal(p.Summary, &pieces); err != nil {
				return part, db.Invalid("summary: %v", err)
			}
		}
		var texts []string
		for _, piece := range pieces {
			texts = append(texts, piece.Text)
		}
		part.CallID, part.Data, part.Summary, part.Text = p.ID, p.Encrypted, p.Summary, strings.Join(texts, "\n")
	default:
		return part, db.Invalid("a part of a message has the type %q", db.Short(p.Type))
	}
	return part, nil
}

// results returns a message with tool results.
func (m fileMessage) results(d recall.Draft) (recall.Draft, string, error) {
	returns := m.ToolReturns
	if len(returns) == 0 && m.ToolCallID != nil {
		returns = []fileReturn{{ToolCallID: m.ToolCallID, Response: m.Content}}
	}
	for _, r := range returns {
		if r.ToolCallID == nil || *r.ToolCallID == "" {
			if r.ToolCallID = m.ToolCallID; r.ToolCallID == nil {
				continue
			}
		}
		content := append(append(fileContent{}, r.Response...), r.Return...)
		if len(content) == 0 && len(returns) == 1 {
			content = m.Content
		}
		result := recall.Part{Type: recall.ToolReturn, CallID: *r.ToolCallID, IsError: r.Status == "error",
			Stdout: r.Stdout, Stderr: r.Stderr}
		result.SetReturned(content.returned())
		d.Content = append(d.Content, result)
	}
	if len(d.Content) == 0 {
		return d, "It is a result of a tool that names no call.", nil
	}
	return d, "", nil
}

// approvalRole is Letta's role for messages with calls that wait for a client, and for messages with the client's
// answers. Loci keeps both facts on the calls and on their results.
const approvalRole = "approval"

// asked returns the approval state of a message's calls.
func (m fileMessage) asked() recall.Approval {
	if m.Role == approvalRole {
		return recall.Asked
	}
	return ""
}
