package letta

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// SendMessages is a request for an agent's answer to messages. Exactly one of Messages and Input must be set.
type SendMessages struct {
	Messages     []SentMessage           `json:"messages,omitempty" doc:"Messages, approvals, or results of tools."`
	Input        rest.Opt[SentContent]   `json:"input,omitzero" doc:"In place of messages: one message of the user."`
	MaxSteps     rest.Opt[int]           `json:"max_steps,omitzero" doc:"Answers of the model at most; 50 if absent."`
	Speech       rest.Opt[bool]          `json:"use_assistant_message,omitzero" deprecated:"true"`
	SpeechTool   rest.Opt[string]        `json:"assistant_message_tool_name,omitzero" deprecated:"true"`
	SpeechArg    rest.Opt[string]        `json:"assistant_message_tool_kwarg,omitzero" deprecated:"true"`
	Types        rest.Opt[itemTypeNames] `json:"include_return_message_types,omitzero" doc:"Of the answer; all if absent."`
	ClientTools  rest.Opt[[]ClientTool]  `json:"client_tools,omitzero" doc:"Tools that the client runs itself."`
	Model        rest.Opt[string]        `json:"override_model,omitzero" doc:"The handle of another model."`
	System       rest.Opt[string]        `json:"override_system,omitzero" doc:"Other instructions."`
	SystemAlias  rest.Opt[string]        `json:"system,omitzero" deprecated:"true" doc:"In place of override_system."`
	Skills       rest.Opt[[]ClientSkill] `json:"client_skills,omitzero" doc:"Are shown to the model in this run."`
	Compactions  rest.Opt[bool]          `json:"include_compaction_messages,omitzero" doc:"Show summaries, too."`
	Streaming    rest.Opt[bool]          `json:"streaming,omitzero" doc:"Answer with server-sent events."`
	StreamTokens rest.Opt[bool]          `json:"stream_tokens,omitzero" doc:"Send answers piece by piece."`
	Pings        rest.Opt[bool]          `json:"include_pings,omitzero" doc:"Keep the stream alive with pings."`
	Background   rest.Opt[bool]          `json:"background,omitzero" doc:"Keep the stream, to be attached to again."`
	AgentID      rest.Opt[string]        `json:"agent_id,omitzero" doc:"The agent of a conversation named 'default'."`
	WhenBusy     string                  `json:"when_busy,omitempty" enum:"wait,refuse" doc:"Absent: wait."`
	OfDefault
	UnservedOfRun
}

// OfDefault is the body field that names the conversation, on routes that always work on the default one.
type OfDefault struct {
	Conversation rest.Opt[string] `json:"conversation_id,omitzero" doc:"Only that of the route: others have their own."`
}

// CheckConversation returns a 422 if the body names another conversation than the path. elsewhere is the route for
// other conversations.
func (o OfDefault) CheckConversation(path, elsewhere string) error {
	if id := o.Conversation.Value; id != "" && id != path {
		return rest.Unprocessable("body.conversation_id", "is another conversation than that of the route: send "+elsewhere+
			" for another one, or leave it out")
	}
	return nil
}

// UnservedOfRun are fields of Letta's for things that Loci does not do. Clients send them empty; Loci refuses any
// content.
type UnservedOfRun struct {
	Callback    rest.Opt[string] `json:"callback_url,omitzero" deprecated:"true" doc:"Not served: leave it out."`
	Thinking    rest.Opt[string] `json:"enable_thinking,omitzero" deprecated:"true" doc:"Not served: leave it out."`
	Logprobs    rest.Opt[bool]   `json:"return_logprobs,omitzero" deprecated:"true" doc:"Not served: leave it out."`
	TopLogprobs rest.Opt[int]    `json:"top_logprobs,omitzero" deprecated:"true" doc:"Not served: leave it out."`
	TokenIDs    rest.Opt[bool]   `json:"return_token_ids,omitzero" deprecated:"true" doc:"Not served: leave it out."`
}

func (u UnservedOfRun) check() error {
	const noLogprobs = "the model's probabilities and token ids are not kept; leave it out"
	for _, field := range []struct {
		name string
		set  bool
		why  string
	}{
		{"callback_url", u.Callback.Value != "", "this server calls no URLs; leave it out, and read GET /v1/runs/{run_id}"},
		{"enable_thinking", u.Thinking.Value != "", "the agent's model_settings say whether it thinks; leave it out"},
		{"return_logprobs", u.Logprobs.Value, noLogprobs},
		{"top_logprobs", u.TopLogprobs.Value != 0, noLogprobs},
		{"return_token_ids", u.TokenIDs.Value, noLogprobs},
	} {
		if field.set {
			return rest.Unprocessable("body."+field.name, field.why)
		}
	}
	return nil
}

// ClientSkill is a text that the client holds. The model is told about it.
type ClientSkill struct {
	Name        string `json:"name" minLength:"1"`
	Description string `json:"description"`
	Location    string `json:"location" doc:"Where the client's tools find it."`
}

// SentMessage is a message of the client, its answer to requests for approval, or results of tools that it ran.
type SentMessage struct {
	Type      rest.Opt[string]         `json:"type,omitzero" doc:"message, approval or tool_return."`
	Role      rest.Opt[string]         `json:"role,omitzero" doc:"user, system or assistant."`
	Content   rest.Opt[SentContent]    `json:"content,omitzero"`
	Name      rest.Opt[string]         `json:"name,omitzero"`
	OTID      rest.Opt[string]         `json:"otid,omitzero" doc:"The client's own id: a message is stored once by it."`
	Sender    rest.Opt[string]         `json:"sender_id,omitzero"`
	Group     rest.Opt[string]         `json:"group_id,omitzero"`
	BatchItem rest.Opt[string]         `json:"batch_item_id,omitzero" deprecated:"true" doc:"Not served: leave it out."`
	Approvals rest.Opt[[]SentApproval] `json:"approvals,omitzero" doc:"Approvals, or results of the client's tools."`
	Approve   rest.Opt[bool]           `json:"approve,omitzero" deprecated:"true"`
	RequestID rest.Opt[string]         `json:"approval_request_id,omitzero" deprecated:"true"`
	Reason    rest.Opt[string]         `json:"reason,omitzero" deprecated:"true"`
	Returns   rest.Opt[[]SentApproval] `json:"tool_returns,omitzero" doc:"Results of tools that the client ran."`
}

// SentApproval approves or denies a call, or gives the result of a tool.
type SentApproval struct {
	Type    rest.Opt[string]      `json:"type,omitzero" doc:"approval or tool."`
	CallID  string                `json:"tool_call_id" minLength:"1"`
	Approve rest.Opt[bool]        `json:"approve,omitzero"`
	Reason  rest.Opt[string]      `json:"reason,omitzero"`
	Return  rest.Opt[SentContent] `json:"tool_return,omitzero"`
	Status  rest.Opt[string]      `json:"status,omitzero" doc:"success or error."`
	Stdout  rest.Opt[[]string]    `json:"stdout,omitzero"`
	Stderr  rest.Opt[[]string]    `json:"stderr,omitzero"`
}

// ClientTool is a tool that the client runs. When the model calls it, the run stops with requires_approval.
type ClientTool struct {
	Name        string           `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9_-]+$"`
	Description rest.Opt[string] `json:"description,omitzero"`
	Parameters  rest.Object      `json:"parameters,omitempty" doc:"A JSON schema of its arguments."`
}

// Bounds of max_steps.
const (
	defaultSteps = 50
	mostSteps    = 1_000
)

// CheckAgent returns a 422 if the body names another agent than the path.
func (m SendMessages) CheckAgent(path string) error {
	if id := m.AgentID.Value; id != "" && id != path {
		return rest.Unprocessable("body.agent_id", "is another agent than that of the path: leave it out")
	}
	return nil
}

// Answers reports whether a request answers calls: with approvals, denials or results.
func (m SendMessages) Answers() bool {
	return slices.ContainsFunc(m.Messages, func(s SentMessage) bool {
		return slices.Contains([]string{"approval", "tool_return"}, s.Type.Value) || s.Approvals.Set || s.Approve.Set ||
			s.Returns.Set
	})
}

// Request returns the run to start. streaming says whether the answer is a stream.
func (m SendMessages) Request(streaming bool) (loop.Request, error) {
	r := loop.Request{Background: m.Background.Value, Options: loop.Options{Model: notEmpty(m.Model),
		System: cmp.Or(notEmpty(m.System), notEmpty(m.SystemAlias)), StreamTokens: m.StreamTokens.Value,
		Compactions: m.Compactions.Value, View: m.view()}}
	r.Options.MaxSteps = defaultSteps
	if steps := m.MaxSteps.Pointer(); steps != nil {
		r.Options.MaxSteps = *steps
	}
	if r.Options.MaxSteps < 1 || r.Options.MaxSteps > mostSteps {
		return r, rest.Unprocessable("body.max_steps", fmt.Sprintf("expected a number of 1 to %d", mostSteps))
	}
	if err := cmp.Or(m.check(), checkHandle("override_model", m.Model.Value), m.checkStreaming(streaming),
		m.addClientTools(&r)); err != nil {
		return r, err
	}
	messages := m.Messages
	if input := m.Input.Pointer(); input != nil {
		if messages != nil {
			return r, rest.Unprocessable("body.input", "cannot stand beside messages: give one of them")
		}
		messages = []SentMessage{{Role: rest.Opt[string]{Set: true, Value: "user"}, Content: m.Input}}
	}
	if len(messages) == 0 {
		return r, rest.Unprocessable("body", "expected messages, with at least one, or input")
	}
	for i, message := range messages {
		if err := message.addTo(&r, fmt.Sprintf("body.messages[%d]", i)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// addClientTools adds the client's tools and skills to a run.
func (m SendMessages) addClientTools(r *loop.Request) error {
	names := map[string]bool{}
	for i, t := range m.ClientTools.Value {
		if names[t.Name] {
			return rest.Unprocessable(fmt.Sprintf("body.client_tools[%d].name", i), fmt.Sprintf("%s is the name of an earlier "+
				"one: give each tool a name of its own", t.Name))
		}
		names[t.Name] = true
		r.Options.ClientTools = append(r.Options.ClientTools, loop.ClientTool{Name: t.Name,
			Description: t.Description.Value, Parameters: json.RawMessage(t.Parameters)})
	}
	for _, s := range m.Skills.Value {
		r.Options.Skills = append(r.Options.Skills, loop.Skill(s))
	}
	return nil
}

func (m SendMessages) checkStreaming(streaming bool) error {
	if streaming {
		return nil
	}
	for name, set := range map[string]bool{"stream_tokens": m.StreamTokens.Value, "background": m.Background.Value,
		"include_pings": m.Pings.Set && !m.Pings.Null && !m.Pings.Value} {
		if set {
			return rest.Unprocessable("body."+name, "asks for something of a stream: set streaming to true, too")
		}
	}
	return nil
}

// view says how a client sees the messages of its run.
type view struct {
	Types    []string `json:"types,omitempty"`
	Speaker  string   `json:"speaker,omitempty"`
	Argument string   `json:"argument,omitempty"`
}

func (m SendMessages) view() json.RawMessage {
	v := view{Types: m.Types.Value}
	if !m.Speech.Set || m.Speech.Null || m.Speech.Value {
		v.Speaker, v.Argument = cmp.Or(m.SpeechTool.Value, speechTool), cmp.Or(m.SpeechArg.Value, speechArgument)
	}
	raw, _ := json.Marshal(v) // strings can be marshaled
	return raw
}

// addTo adds the message to a run. place is the message's place in the body.
func (m SentMessage) addTo(r *loop.Request, place string) error {
	if m.BatchItem.Value != "" {
		return rest.Unprocessable(place+".batch_item_id", "this server has no batches of requests; leave it out")
	}
	kind := m.Type.Value
	if kind == "" && (m.Approve.Pointer() != nil || m.RequestID.Pointer() != nil || m.Approvals.Pointer() != nil) {
		kind = "approval"
	}
	switch {
	case kind == "approval":
		return m.addApproval(r, place)
	case kind == "tool_return" || kind == "" && m.Returns.Pointer() != nil:
		return m.addReturns(r, place+".tool_returns", m.Returns.Value)
	case kind != "" && kind != "message":
		return rest.Unprocessable(place+".type", fmt.Sprintf("expected one of message, approval, tool_return. Got: %q", kind))
	}
	role := recall.Role(m.Role.Value)
	if role != recall.User && role != recall.System && role != recall.Assistant {
		return rest.Unprocessable(place+".role", fmt.Sprintf("expected one of user, system, assistant. Got: %q", role))
	}
	parts, err := partsOf(m.Content.Value, place+".content")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return rest.Unprocessable(place+".content", "expected a text, or a list of texts and images")
	}
	d := m.draft(role)
	d.Content = parts
	r.Input = append(r.Input, d)
	return nil
}

func (m SentMessage) draft(role recall.Role) recall.Draft {
	return recall.Draft{Role: role, Name: m.Name.Pointer(), OTID: m.OTID.Pointer(), SenderID: m.Sender.Pointer(),
		GroupID: m.Group.Pointer()}
}

// addApproval adds approvals and denials, and the results among them. Older clients decide on all calls of a message at
// once.
func (m SentMessage) addApproval(r *loop.Request, place string) error {
	var returns []SentApproval
	for i, a := range m.Approvals.Value {
		result, err := a.isResult(fmt.Sprintf("%s.approvals[%d]", place, i))
		if err != nil {
			return err
		}
		if result {
			returns = append(returns, a)
			continue
		}
		r.Approvals = append(r.Approvals, loop.Approval{CallID: a.CallID, Approve: a.Approve.Value,
			Reason: a.Reason.Value, OTID: m.OTID.Value, GroupID: m.Group.Value})
	}
	approve := m.Approve.Pointer()
	switch {
	case len(m.Approvals.Value) > 0 && approve != nil && m.contradicts(*approve):
		return rest.Unprocessable(place+".approve", "it contradicts approvals: leave it out")
	case len(m.Approvals.Value) == 0 && approve != nil:
		r.Approvals = append(r.Approvals, loop.Approval{MessageID: m.RequestID.Value, Approve: *approve,
			Reason: m.Reason.Value, OTID: m.OTID.Value, GroupID: m.Group.Value})
		return nil
	case len(m.Approvals.Value) == 0:
		return rest.Unprocessable(place+".approvals", "expected at least one")
	case len(returns) == 0:
		return nil
	}
	return m.addReturns(r, place+".approvals", returns)
}

// contradicts reports whether any approval in the message differs from the decision on the message as a whole.
func (m SentMessage) contradicts(approve bool) bool {
	return slices.ContainsFunc(m.Approvals.Value, func(a SentApproval) bool {
		decided := a.Approve.Pointer()
		return decided != nil && *decided != approve
	})
}

// isResult reports whether a is the result of a tool. The type decides; without a type, a tool_return other than null
// does. A 422 if a field of the other kind is set. place is the place in the body.
func (a SentApproval) isResult(place string) (bool, error) {
	result := a.Return.Pointer() != nil
	switch kind := a.Type.Value; {
	case kind == "tool":
		return true, nil
	case kind != "" && kind != "approval":
		return false, rest.Unprocessable(place+".type", fmt.Sprintf("expected one of approval, tool. Got: %q",
			db.Short(kind)))
	case kind == "approval" && result:
		return false, rest.Unprocessable(place+".tool_return", "an approval has no result: leave it out, or send type tool")
	case result:
		return true, nil
	case a.Approve.Pointer() == nil:
		return false, rest.Unprocessable(place+".approve", "expected true or false")
	}
	return false, nil
}

func (m SentMessage) addReturns(r *loop.Request, place string, returns []SentApproval) error {
	d := m.draft(recall.Tool)
	for i, a := range returns {
		parts, err := partsOf(a.Return.Value, fmt.Sprintf("%s[%d].tool_return", place, i))
		if err != nil {
			return err
		}
		p := recall.Part{Type: recall.ToolReturn, CallID: a.CallID, IsError: a.Status.Value == "error",
			Stdout: a.Stdout.Value, Stderr: a.Stderr.Value}
		p.SetReturned(parts)
		d.Content = append(d.Content, p)
	}
	if len(d.Content) == 0 {
		return rest.Unprocessable(place, "expected at least one")
	}
	r.Input = append(r.Input, d)
	return nil
}

// partsOf returns a content as parts of a message. place is the content's place in the body.
func partsOf(content SentContent, place string) (parts []recall.Part, err error) {
	for i, p := range content {
		part := recall.Part{Type: recall.PartType(p.Type), Text: p.Text, Source: json.RawMessage(p.Source)}
		if part.Type == recall.Image && part.Source == nil {
			return nil, rest.Unprocessable(fmt.Sprintf("%s[%d].source", place, i),
				"expected required property source to be present")
		}
		parts = append(parts, part)
	}
	return parts, nil
}
