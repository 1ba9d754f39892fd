package capture

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// isListed tells an item of a list of messages, as this API and Letta's show them.
func isListed(m item) bool { return m.has("message_type") }

// listed are the items that are understood, by message_type.
var listed = map[string]func(item) recall.Draft{
	"system_message":           func(m item) recall.Draft { return saidBy(m, recall.System) },
	"user_message":             func(m item) recall.Draft { return saidBy(m, recall.User) },
	"assistant_message":        func(m item) recall.Draft { return saidBy(m, recall.Assistant) },
	"reasoning_message":        readListedReasoning,
	"hidden_reasoning_message": readHiddenReasoning,
	"tool_call_message":        readListedCalls,
	"tool_return_message":      readToolReturns,
}

// readListed reads an item of a list. Several of the same id are one message.
func readListed(m item) recall.Draft {
	kind := m.text("message_type")
	if strings.HasPrefix(kind, "approval_") {
		return refuseApproval(m)
	}
	if read := listed[kind]; read != nil {
		return read(m)
	}
	m.refuse("message_type", "expected one of system_message, user_message, assistant_message, reasoning_message, "+
		"hidden_reasoning_message, "+
		"tool_call_message, tool_return_message; leave out others, which are no turns")
	return recall.Draft{}
}

func saidBy(m item, role recall.Role) recall.Draft {
	d := recall.Draft{Role: role, Content: m.content("content", plainParts)}
	if len(d.Content) == 0 {
		m.refuse("content", "expected a text, or a list of parts")
	}
	return d
}

func readListedReasoning(m item) recall.Draft {
	return recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Reasoning, Text: m.given("reasoning"),
		Native: m.text("source") == "reasoner_model", Signature: m.text("signature")}}}
}

func readHiddenReasoning(m item) recall.Draft {
	p := recall.Part{Type: recall.OmittedReasoning}
	if m.oneOf("state", "redacted", "omitted") == "redacted" {
		p = recall.Part{Type: recall.RedactedReasoning, Data: m.text("hidden_reasoning")}
	}
	return recall.Draft{Role: recall.Assistant, Content: []recall.Part{p}}
}

// readListedCalls reads calls of tools. Older lists have one, as tool_call.
func readListedCalls(m item) recall.Draft {
	calls := m.items("tool_calls", "a list of calls")
	if len(calls) == 0 {
		calls = []item{m.object("tool_call")}
	}
	d := recall.Draft{Role: recall.Assistant}
	for _, c := range calls {
		d.Content = append(d.Content, recall.Part{Type: recall.ToolCall, CallID: c.needed("tool_call_id"),
			Name:  c.needed("name"),
			Input: c.arguments("arguments")})
	}
	return d
}

// isApproval tells Letta's answer to a tool that waits to be allowed.
func isApproval(m item) bool {
	return m.text("type") == "approval" || m.has("approve") || m.has("approval_request_id") || m.has("approvals")
}

func refuseApproval(m item) recall.Draft {
	at := "type"
	for _, name := range []string{"message_type", "approve", "approvals", "approval_request_id"} {
		if m.has(name) {
			at = name
			break
		}
	}
	m.refuse(at, "approvals are not turns, and are not kept: send the call as a tool_call and what came of it as a "+
		"tool_return")
	return recall.Draft{}
}

// isToolReturns tells Letta's way to give back what tools returned.
func isToolReturns(m item) bool { return m.text("type") == "tool_return" || m.has("tool_returns") }

// readToolReturns reads what tools returned. Older lists have one, without tool_returns.
func readToolReturns(m item) recall.Draft {
	returns := m.items("tool_returns", "a list of what tools returned")
	if len(returns) == 0 {
		if !m.has("tool_return") {
			m.refuse("tool_returns", "expected at least one")
		}
		returns = []item{m}
	}
	d := recall.Draft{Role: recall.Tool}
	for _, r := range returns {
		d.Content = append(d.Content, readToolReturn(r))
	}
	return d
}

func readToolReturn(r item) recall.Part {
	p := recall.Part{Type: recall.ToolReturn, CallID: r.needed("tool_call_id"), Stdout: r.texts("stdout"),
		Stderr: r.texts("stderr")}
	if r.has("status") {
		p.IsError = r.oneOf("status", "success", "error") == "error"
	}
	p.Text, p.Images = r.result("tool_return")
	return p
}

func readToolCallPart(p item) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: p.needed("id"), Name: p.needed("name"), Input: p.arguments("input"),
		Signature: p.text("signature")}
}

func readToolReturnPart(p item) recall.Part {
	text, images := p.result("content")
	return recall.Part{Type: recall.ToolReturn, CallID: p.needed("tool_call_id"), Text: text, Images: images,
		IsError: p.flag("is_error")}
}

func readReasoning(p item) recall.Part {
	return recall.Part{Type: recall.Reasoning, Text: p.given("reasoning"), Native: p.flag("is_native"),
		Signature: p.text("signature")}
}

func readRedacted(p item) recall.Part {
	return recall.Part{Type: recall.RedactedReasoning, Data: p.given("data")}
}

func readOmitted(p item) recall.Part {
	return recall.Part{Type: recall.OmittedReasoning, Signature: p.text("signature")}
}

// readSummarized reads a summary of reasoning: its texts are what is searched, and it is kept as the provider sent it.
func readSummarized(p item) recall.Part {
	var texts []string
	for _, s := range p.items("summary", "a list of texts with their index") {
		texts = append(texts, s.given("text"))
	}
	if !p.has("summary") {
		p.refuse("summary", "expected a list of texts with their index")
	}
	return recall.Part{Type: recall.SummarizedReasoning, CallID: p.text("id"), Text: strings.Join(texts, "\n"),
		Data:    p.text("encrypted_content"),
		Summary: compact(p.fields["summary"])}
}

// readImage reads an image as Letta has it; Anthropic's are the same.
func readImage(p item) recall.Part {
	s := p.object("source")
	kind := s.oneOf("type", "url", "base64", "letta")
	fields := map[string]string{"type": kind}
	for _, name := range []string{"url", "media_type", "data", "file_id", "detail"} {
		if value := s.text(name); value != "" {
			fields[name] = value
		}
	}
	for _, name := range map[string][]string{"url": {"url"}, "base64": {"media_type", "data"},
		"letta": {"file_id"}}[kind] {
		s.needed(name)
	}
	return recall.Part{Type: recall.Image, Source: source(fields)}
}

// compact is JSON without blanks between its tokens.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // it was parsed before: this does not happen
	}
	return b.Bytes()
}
