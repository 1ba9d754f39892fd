package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// Options are what a request asks of its run.
type Options struct {
	MaxSteps     int             `json:"max_steps"`
	ClientTools  []ClientTool    `json:"client_tools,omitempty"`
	Model        *string         `json:"model,omitempty"`  // a handle that replaces the conversation's
	System       *string         `json:"system,omitempty"` // instructions that replace the agent's
	Skills       []Skill         `json:"skills,omitempty"`
	Compactions  bool            `json:"compactions,omitempty"` // show summaries that the run makes
	StreamTokens bool            `json:"stream_tokens,omitempty"`
	Approved     []string        `json:"approved,omitempty"`     // ids of calls that the client approved
	Approvals    []Approval      `json:"approvals,omitempty"`    // approvals and denials, as the client sent them
	Waiting      *Waiting        `json:"waiting,omitempty"`      // calls of an earlier run that were shown again
	OTIDs        []string        `json:"otids,omitempty"`        // otids of the approvals and of messages sent with them
	InputSHA256  []byte          `json:"input_sha256,omitempty"` // of messages with approvals, as the client sent them
	Following    []recall.Draft  `json:"following,omitempty"`    // messages to append after the results of approved calls
	Speaks       bool            `json:"speaks,omitempty"`       // the agent speaks with the tool send_message
	View         json.RawMessage `json:"view,omitempty"`         // how the client wants to see messages; the caller's
	KeyID        string          `json:"key_id,omitempty"`       // id of the request's API key
	Resumes      string          `json:"resumes,omitempty"`      // the first run of the same request, which failed
	Retried      []string        `json:"retried,omitempty"`      // otids of messages that repeat messages of Resumes
	Follows      []string        `json:"follows,omitempty"`      // failed runs that have the request's first messages
	Refused      *Refused        `json:"refused,omitempty"`      // the prompt was refused, so the run ends like this
}

// Waiting is a message with calls that wait for the client.
type Waiting struct {
	MessageID string   `json:"message_id"`
	Calls     []string `json:"calls"` // their ids
}

// of returns the event that shows the message's waiting calls.
func (w Waiting) of(m recall.Message) Event {
	m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(p recall.Part) bool {
		return p.Type != recall.ToolCall || !slices.Contains(w.Calls, p.CallID)
	})
	for i := range m.Content {
		m.Content[i].Approval = recall.Asked
	}
	return Event{Message: &m}
}

// ClientTool is a tool that the client runs.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Skill is a text that the client can load. The model is told its name and description.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Location    string `json:"location"`
}

// aboutSkills tells the model of the client's skills.
func aboutSkills(skills []Skill) string {
	if len(skills) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("The user's program has these skills. Before you use one, read it at its place with the program's " +
		"tools:")
	for _, s := range skills {
		fmt.Fprintf(&text, "\n- %s: %s (%s)", s.Name, s.Description, s.Location)
	}
	return text.String()
}

// Approval is a client's answer to a call that needs its approval.
type Approval struct {
	CallID    string `json:"call_id,omitempty"` // empty: all waiting calls of the message MessageID
	MessageID string `json:"message_id,omitempty"`
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason,omitempty"` // why the client denies
	OTID      string `json:"otid,omitempty"`   // the client's own id of the answer; may be empty
	GroupID   string `json:"group_id,omitempty"`
}

// asks reports whether the client must run or approve calls of a tool.
func (o Options) asks(r rules, tool string) bool {
	return o.hasClientTool(tool) || r.has(byClient, tool) || r.has("requires_approval", tool)
}

// hasClientTool reports whether the client runs a tool.
func (o Options) hasClientTool(name string) bool {
	return slices.ContainsFunc(o.ClientTools, func(t ClientTool) bool { return t.Name == name })
}

// Refused says how a run ends after its prompt was refused.
type Refused struct {
	Reason  string  `json:"reason"`
	Failure Failure `json:"failure"`
}
