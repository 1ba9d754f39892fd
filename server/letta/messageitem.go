package letta

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// ItemOptions controls how messages become items.
type ItemOptions struct {
	Types []string // of the items that are wanted; all if it is empty

	// Calls of the tool Speaker are shown as messages of the assistant, whose text is the Argument. Returns of these
	// calls, Spoken, are left out. An empty Speaker shows all calls as calls.
	Speaker, Argument string
	Spoken            map[recall.Return]bool

	Made bool // the items are those of a run's answer, which repeats nothing that the client said
}

// The tool by which Letta's older agents speak, and its argument.
const (
	speechTool     = "send_message"
	speechArgument = "message"
)

// Items returns the items of a message: its thoughts, its texts, its calls. There is at least one, unless o.Types
// excludes all of them.
func (o ItemOptions) Items(m recall.Message) []MessageItem {
	b := itemBuilder{ItemOptions: o, m: m}
	switch m.Role {
	case recall.System:
		h := b.head(systemMessage, m.OTID)
		b.add(h, SystemMessage{h, contentOf(m.Content).Texts()})
	case recall.User:
		h := b.head(userMessage, m.OTID)
		b.add(h, UserMessage{h, contentOf(m.Content)})
	case recall.Assistant:
		b.assistant()
	case recall.Tool:
		b.returns()
	case recall.Summary:
		b.summary()
	}
	return b.items
}

// summary shows a summary, and before it its compaction if the caller asks for that type.
func (b *itemBuilder) summary() {
	stats := rest.Object(b.m.Content[0].Stats)
	if slices.Contains(b.Types, eventMessage) {
		h := b.next(eventMessage)
		b.add(h, CompactionMessage{h, "compaction", compactionEvent(stats)})
	}
	h := b.next(summaryMessage)
	b.add(h, SummaryMessage{h, contentOf(b.m.Content).Texts(), stats})
}

// compactionEvent returns the data of Letta's event of a compaction that begins.
func compactionEvent(stats rest.Object) rest.Object {
	var of struct {
		Trigger string `json:"trigger"`
		Before  int    `json:"context_tokens_before"`
		Window  int    `json:"context_window"`
	}
	if json.Unmarshal(stats, &of) != nil {
		return rest.Object("{}")
	}
	raw, _ := json.Marshal(map[string]any{ // plain values
		"trigger": of.Trigger, "context_token_estimate": of.Before, "context_window": of.Window})
	return raw
}

type itemBuilder struct {
	ItemOptions
	m     recall.Message
	count int // of the items so far, also of those that Types excludes
	items []MessageItem
}

func (b *itemBuilder) head(kind string, otid *string) MessageHead {
	h := MessageHead{ID: b.m.ID, Date: toTheSecond(b.m.CreatedAt), MessageType: kind, Name: b.m.Name, OTID: otid,
		SenderID: b.m.SenderID, StepID: b.m.StepID, RunID: b.m.RunID, AgentID: b.m.AgentID,
		ConversationID: b.m.ConversationID, Position: b.m.Position, Seq: b.m.Seq}
	h.Purpose, h.Refused, h.Provenance = b.m.Purpose, b.m.Refused, b.m.Provenance
	if b.m.IsErr {
		h.IsErr = &b.m.IsErr
	}
	return h
}

// next returns the head of the next item.
func (b *itemBuilder) next(kind string) MessageHead {
	otid := itemOTID(b.m.ID, b.count)
	return b.head(kind, &otid)
}

func (b *itemBuilder) add(h MessageHead, item any) {
	b.count++
	if len(b.Types) == 0 || slices.Contains(b.Types, h.MessageType) {
		b.items = append(b.items, MessageItem{item})
	}
}

// itemOTID returns the id of an item: the message's, with the item's place in its last seven bits. Places from 128,
// which Letta does not have, change the bits above them.
func itemOTID(messageID string, place int) string {
	id, err := uuid.Parse(strings.TrimPrefix(messageID, "message-"))
	if err != nil {
		return messageID
	}
	id[15] = id[15]&0x80 ^ byte(place) //nolint:gosec // the lower bits
	id[14] ^= byte(place >> 8)         //nolint:gosec // the bits above
	return id.String()
}

func (b *itemBuilder) assistant() {
	var said Content
	var calls []recall.Part
	for _, p := range b.m.Content {
		switch p.Type {
		case recall.Text:
			said = append(said, textPart(p.Text))
		case recall.Image: // clients know only texts of an agent
			said = append(said, textPart("[image]"))
		case recall.ToolCall:
			calls = append(calls, p)
		default:
			b.thought(p)
		}
	}
	if len(said) > 0 || len(b.m.Content) == 0 {
		h := b.next(assistantMessage)
		b.add(h, AssistantMessage{h, said})
	}
	b.calls(calls)
}

func (b *itemBuilder) thought(p recall.Part) {
	switch p.Type {
	case recall.RedactedReasoning:
		h := b.next(hiddenReasoningMessage)
		b.add(h, HiddenReasoningMessage{h, "redacted", &p.Data})
	case recall.OmittedReasoning, recall.AnthropicBlock, recall.ResponsesItem:
		h := b.next(hiddenReasoningMessage)
		b.add(h, HiddenReasoningMessage{h, "omitted", nil})
	default:
		h := b.next(reasoningMessage)
		source := "non_reasoner_model"
		if p.Native || p.Type == recall.SummarizedReasoning {
			source = "reasoner_model"
		}
		b.add(h, ReasoningMessage{h, reasoningOf(p), source, given(cmp.Or(p.Signature, p.Data))})
	}
}

// reasoningOf returns the text of a reasoning, or of its summary.
func reasoningOf(p recall.Part) string {
	var summary []struct {
		Text string `json:"text"`
	}
	if p.Text != "" || json.Unmarshal(p.Summary, &summary) != nil {
		return p.Text
	}
	texts := make([]string, len(summary))
	for i, s := range summary {
		texts[i] = s.Text
	}
	return strings.Join(texts, "\n")
}

// calls shows consecutive calls as one item. Calls of the speaker are shown as texts.
func (b *itemBuilder) calls(parts []recall.Part) {
	var together, asked []ToolCall
	flush := func() {
		if len(together) > 0 {
			h := b.next(toolCallMessage)
			b.add(h, ToolCallMessage{h, together[0], together})
			together = nil
		}
	}
	for _, p := range parts {
		c := ToolCall{Name: p.Name, Arguments: p.Input, ToolCallID: p.CallID}
		if p.Approval == recall.Asked {
			asked = append(asked, c)
			continue
		}
		if b.Speaker == "" || p.Name != b.Speaker {
			together = append(together, c)
			continue
		}
		flush()
		h := b.next(assistantMessage)
		b.add(h, AssistantMessage{h, Content{textPart(argument(p.Input, b.Argument))}})
	}
	flush()
	if len(asked) > 0 {
		h := b.next(approvalRequestMessage)
		b.add(h, ApprovalRequest{h, asked[0], asked})
	}
}

// argument returns the text of an argument of a call, or all arguments if the call does not have that one.
func argument(input, name string) string {
	var arguments map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &arguments) != nil || arguments[name] == nil {
		return input
	}
	var text string
	if json.Unmarshal(arguments[name], &text) != nil {
		return string(arguments[name])
	}
	return text
}

func (b *itemBuilder) returns() {
	var returns []ToolReturn
	for _, p := range b.m.Content {
		if !b.Spoken[recall.Return{Key: b.m.Key, CallID: p.CallID}] {
			returns = append(returns, returnOf(p))
		}
	}
	if len(returns) == 0 {
		return
	}
	h, first := b.next(toolReturnMessage), returns[0]
	b.count++
	b.approvals()
	b.add(h, ToolReturnMessage{MessageHead: h, ToolReturn: first.ToolReturn.Texts(), Status: first.Status,
		ToolCallID: first.ToolCallID, Stdout: first.Stdout, Stderr: first.Stderr, ToolReturns: returns})
}

// approvals shows the client's answers to the calls of which the message has the results.
func (b *itemBuilder) approvals() {
	item := ApprovalsOf(b.m)
	if b.Made || len(item.Approvals) == 0 {
		return
	}
	if item.MessageHead = b.next(approvalAnswerMessage); b.m.OTID != nil {
		item.OTID = b.m.OTID
	}
	b.add(item.MessageHead, item)
}

// ApprovalsOf returns the client's answers to the calls of which a message has the results.
func ApprovalsOf(m recall.Message) (all ApprovalResponse) {
	for _, p := range m.Content {
		if a := approvalOf(p); p.Approval == recall.Returned {
			all.Approvals = append(all.Approvals, ApprovalAnswer{returnOf(p)})
		} else if a != nil {
			if all.Approve == nil {
				all.Approve, all.Reason = &a.Approve, a.Reason
			}
			all.Approvals = append(all.Approvals, ApprovalAnswer{*a})
		}
	}
	return all
}

// approvalOf returns the approval or the denial of a result's call; nil if it had none.
func approvalOf(p recall.Part) *ApprovalReturn {
	switch p.Approval {
	case recall.Approved:
		return &ApprovalReturn{Type: "approval", Approve: true, ToolCallID: p.CallID}
	case recall.Denied:
		return &ApprovalReturn{Type: "approval", ToolCallID: p.CallID, Reason: given(loop.DenialReason(p.Text))}
	}
	return nil
}

func returnOf(p recall.Part) ToolReturn {
	return ToolReturn{Type: "tool", ToolCallID: p.CallID, Status: statusOf(p), Stdout: p.Stdout, Stderr: p.Stderr,
		Orphan: p.Orphan, ToolReturn: returned(p), Clip: (*ClippedText)(p.Clip)}
}

func statusOf(p recall.Part) string {
	if p.IsError {
		return "error"
	}
	return "success"
}

// returned returns the text and the images of a tool's result.
func returned(p recall.Part) Content {
	c := contentOf(p.Returned())
	if len(p.ImagesAt) == 0 && p.Text == "" {
		c = append(Content{textPart("")}, c...)
	}
	return c
}

// contentOf returns the texts and images among parts.
func contentOf(parts []recall.Part) (c Content) {
	for _, p := range parts {
		switch p.Type {
		case recall.Text:
			c = append(c, textPart(p.Text))
		case recall.Image:
			c = append(c, ContentPart{Type: "image", Source: rest.Object(p.Source)})
		}
	}
	return c
}

// given returns a pointer to a value, nil for the zero value.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
