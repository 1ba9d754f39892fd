package capture

import (
	"iter"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// isListed reports whether a message is an item of a message list, in the form that Letta's API and ours return.
func isListed(m chat.Object) bool { return m.Has("message_type") }

// listed are the readers of list items, by message_type.
var listed = map[string]func(chat.Object) recall.Draft{
	"system_message":           func(m chat.Object) recall.Draft { return saidBy(m, recall.System) },
	"user_message":             func(m chat.Object) recall.Draft { return saidBy(m, recall.User) },
	"assistant_message":        func(m chat.Object) recall.Draft { return saidBy(m, recall.Assistant) },
	"reasoning_message":        readListedReasoning,
	"hidden_reasoning_message": readHiddenReasoning,
	"tool_call_message":        func(m chat.Object) recall.Draft { return readListedCalls(m, "") },
	"tool_return_message":      readToolReturns,
	approvalRequest:            func(m chat.Object) recall.Draft { return readListedCalls(m, recall.Asked) },
	approvalResponse:           readListedAnswers,
}

// The types of list items for calls that wait for a client, and for the client's answers.
const (
	approvalRequest  = "approval_request_message"
	approvalResponse = "approval_response_message"
)

// readListed reads a list item. Items with the same id form one message.
func readListed(m chat.Object) recall.Draft {
	kind := m.Text("message_type")
	if reader := listed[kind]; reader != nil {
		return reader(m)
	}
	m.Refuse("message_type", "expected one of system_message, user_message, assistant_message, reasoning_message, "+
		"hidden_reasoning_message, tool_call_message, tool_return_message, "+approvalRequest+", "+approvalResponse+
		"; leave out others, which are no turns")
	return recall.Draft{}
}

func saidBy(m chat.Object, role recall.Role) recall.Draft {
	d := recall.Draft{Role: role, Content: m.Content("content", chat.PlainParts)}
	if len(d.Content) == 0 {
		m.Refuse("content", "expected a text, or a list of parts")
	}
	return d
}

func readListedReasoning(m chat.Object) recall.Draft {
	return recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Reasoning, Text: m.Given("reasoning"),
		Native: m.Text("source") == "reasoner_model", Signature: m.Text("signature")}}}
}

func readHiddenReasoning(m chat.Object) recall.Draft {
	p := recall.Part{Type: recall.OmittedReasoning}
	if m.OneOf("state", "redacted", "omitted") == "redacted" {
		p = recall.Part{Type: recall.RedactedReasoning, Data: m.Text("hidden_reasoning")}
	}
	return recall.Draft{Role: recall.Assistant, Content: []recall.Part{p}}
}

// readListedCalls reads tool calls. Older lists have a single one, as tool_call.
func readListedCalls(m chat.Object, approval recall.Approval) recall.Draft {
	calls := m.Items("tool_calls", "a list of calls")
	if len(calls) == 0 {
		calls = []chat.Object{m.Object("tool_call")}
	}
	d := recall.Draft{Role: recall.Assistant}
	for _, c := range calls {
		d.Content = append(d.Content, recall.Part{Type: recall.ToolCall, CallID: c.Needed("tool_call_id"),
			Name: c.Called("name"), Input: c.Arguments("arguments"), Approval: approval})
	}
	return d
}

// readListedAnswers reads a client's answers to calls, as parts without a type. approved later adds them to the
// results.
func readListedAnswers(m chat.Object) recall.Draft {
	d := recall.Draft{Role: recall.Tool}
	for _, a := range m.Items("approvals", "a list of answers to calls") {
		p := recall.Part{CallID: a.Needed("tool_call_id"), Approval: recall.Denied}
		switch {
		case a.OneOf("type", "approval", "tool") == "tool":
			p.Approval = recall.Returned
		case a.Flag("approve"):
			p.Approval = recall.Approved
		}
		d.Content = append(d.Content, p)
	}
	if len(d.Content) == 0 {
		m.Refuse("approvals", "expected at least one")
	}
	return d
}

// approved adds answers, which readListedAnswers read, to the results of their calls. It yields an error for an answer
// without a following result.
func approved(messages iter.Seq2[message, error]) iter.Seq2[message, error] {
	type answer struct {
		recall.Approval
		at string
	}
	return func(yield func(message, error) bool) {
		answers := map[string]answer{}
		for m, err := range messages {
			for _, p := range m.Content {
				if p.Type == "" {
					answers[p.CallID] = answer{p.Approval, m.at}
				}
			}
			before := len(m.Content)
			m.Content = slices.DeleteFunc(m.Content, func(p recall.Part) bool { return p.Type == "" })
			for i, p := range m.Content {
				if a, found := answers[p.CallID]; found && p.Type == recall.ToolReturn {
					m.Content[i].Approval = a.Approval
					delete(answers, p.CallID)
				}
			}
			if (err != nil || before == 0 || len(m.Content) > 0) && !yield(m, err) || err != nil {
				return
			}
		}
		for id, a := range answers {
			yield(message{}, &chat.FieldError{At: a.at + ".approvals", Rule: "the result of the call " + db.Short(id) +
				" does not follow: send the tool_return_message of the call in the same request"})
			return
		}
	}
}

// isApproval reports whether a message is an answer, in Letta's form, to a call that needs approval.
func isApproval(m chat.Object) bool {
	return m.Text("type") == "approval" || m.Has("approve") || m.Has("approval_request_id") || m.Has("approvals")
}

func refuseApproval(m chat.Object) recall.Draft {
	fields := []string{"message_type", "approve", "approvals", "approval_request_id", "type"}
	at := max(slices.IndexFunc(fields, m.Has), 0)
	m.Refuse(fields[at], "approvals are not turns, and are not kept: send the call as a tool_call and what came of it "+
		"as a tool_return")
	return recall.Draft{}
}

// isToolReturns reports whether a message holds tool results in Letta's form.
func isToolReturns(m chat.Object) bool {
	return m.Text("type") == "tool_return" || m.Has("tool_returns")
}

// readToolReturns reads tool results. Older lists have a single one, without tool_returns.
func readToolReturns(m chat.Object) recall.Draft {
	returns := m.Items("tool_returns", "a list of what tools returned")
	if len(returns) == 0 {
		if !m.Has("tool_return") {
			m.Refuse("tool_returns", "expected at least one")
		}
		returns = []chat.Object{m}
	}
	d := recall.Draft{Role: recall.Tool}
	for _, r := range returns {
		d.Content = append(d.Content, readToolReturn(r))
	}
	return d
}

func readToolReturn(r chat.Object) recall.Part {
	p := recall.Part{Type: recall.ToolReturn, CallID: r.Needed("tool_call_id"), Stdout: r.Texts("stdout"),
		Stderr: r.Texts("stderr")}
	if r.Has("status") {
		p.IsError = r.OneOf("status", "success", "error") == "error"
	}
	r.Result("tool_return", &p)
	return p
}
