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

// ItemOptions says how messages become items.
type ItemOptions struct {
	Types []string // types of the wanted items; all types if empty

	// Calls of the tool Speaker become messages of the assistant; their text is the call's Argument. The returns of these
	// calls are left out unless WithSpoken is set. If Speaker is empty, all calls stay calls.
	Speaker, Argument string
	WithSpoken        bool

	AllPrompts bool // each system prompt of a conversation where it was set, rather than only the newest, at the beginning

	Made bool // the items are part of a run's answer, which must not repeat what the client said
}

// These are the tool by which Letta's older agents speak, and its argument.
const (
	speechTool     = "send_message"
	speechArgument = "message"
)

// Items returns the items of a message: its reasonings, texts and calls. There is at least one item, unless o.Types
// excludes all of them.
func (o ItemOptions) Items(m recall.Message) []MessageItem {
	b := itemBuilder{ItemOptions: o, m: m}
	switch m.Role {
	case recall.System:
		h := b.said(systemMessage)
		b.add(h, SystemMessage{h, ContentOf(m.Content).Texts()})
	case recall.User:
		h := b.said(userMessage)
		b.add(h, UserMessage{h, unpacked(ContentOf(m.Content))})
	case recall.Assistant:
		b.assistant()
	case recall.Tool:
		b.returns()
	case recall.Summary:
		b.summary()
	}
	return b.items
}

// unpacked returns the content of a user's message as Letta lists it: older servers stored its text within an object.
func unpacked(c Content) Content {
	var packed struct {
		Type    string  `json:"type"`
		Message *string `json:"message"`
	}
	if len(c) != 1 || c[0].Text == nil || !strings.HasPrefix(*c[0].Text, "{") ||
		json.Unmarshal([]byte(*c[0].Text), &packed) != nil || packed.Type != userMessage || packed.Message == nil {
		return c
	}
	return Content{textPart(*packed.Message)}
}

// summary adds a summary. If the caller asked for compactions, it first adds the compaction.
func (b *itemBuilder) summary() {
	stats := rest.Object(b.m.Content[0].Stats)
	if slices.Contains(b.Types, eventMessage) {
		h := b.next(eventMessage)
		b.add(h, CompactionMessage{h, "compaction", compactionEvent(stats)})
	}
	h := b.next(summaryMessage)
	b.add(h, SummaryMessage{h, ContentOf(b.m.Content).Texts(), stats})
}

// compactionEvent returns the data of the event that Letta sends when a compaction begins.
func compactionEvent(stats rest.Object) rest.Object {
	var parsed struct {
		Trigger string `json:"trigger"`
		Before  int    `json:"context_tokens_before"`
		Window  int    `json:"context_window"`
	}
	if json.Unmarshal(stats, &parsed) != nil {
		return rest.Object("{}")
	}
	raw, _ := json.Marshal(map[string]any{ // plain values can be marshaled
		"trigger": parsed.Trigger, "context_token_estimate": parsed.Before, "context_window": parsed.Window})
	return raw
}

type itemBuilder struct {
	ItemOptions
	m     recall.Message
	count int // items so far, including those that Types excludes
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

// said returns the head for a message that did not come from the model.
func (b *itemBuilder) said(kind string) MessageHead {
	h := b.next(kind)
	if b.m.OTID != nil {
		h.OTID = b.m.OTID
	}
	return h
}

// next returns the head for the next item.
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

// itemOTID returns the id of an item: the message's id, with the item's place in the last seven bits. Letta has no more
// than 128 items; places from 128 on change the bits above.
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
	var spoken Content
	var calls []recall.Part
	for _, p := range b.m.Content {
		switch {
		case p.Type == recall.Text && p.Kind != recall.InnerThought:
			spoken = append(spoken, textPart(p.Text))
		case p.Type == recall.Image: // Letta's clients expect only texts from an agent
			spoken = append(spoken, textPart("[image]"))
		case p.Type == recall.ToolCall:
			calls = append(calls, p)
		default:
			b.thought(p)
		}
	}
	if len(spoken) > 0 || len(b.m.Content) == 0 {
		h := b.next(assistantMessage)
		b.add(h, AssistantMessage{h, spoken})
	}
	b.calls(calls)
}

// Where a reasoning comes from.
const (
	fromReasoner = "reasoner_model"
	fromOther    = "non_reasoner_model" // a text of another model, for itself
)

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
		source := fromOther
		if p.Native || p.Type == recall.SummarizedReasoning {
			source = fromReasoner
		}
		b.add(h, ReasoningMessage{h, reasoningOf(p), source, given(cmp.Or(p.Signature, p.Data))})
	}
}

// reasoningOf returns the text of a reasoning or, without one, of its summary.
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

// calls adds consecutive calls as one item. Calls of the speaker become texts.
func (b *itemBuilder) calls(parts []recall.Part) {
	var together, waiting []ToolCall
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
			waiting = append(waiting, c)
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
	if len(waiting) > 0 {
		h := b.next(approvalRequestMessage)
		b.add(h, ApprovalRequest{h, waiting[0], waiting})
	}
}

// argument returns one argument of a call as text. If the call lacks that argument, it returns all arguments.
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
		if b.WithSpoken || b.Speaker == "" || b.m.ToolNames[p.CallID] != b.Speaker {
			returns = append(returns, returnOf(p))
		}
	}
	if len(returns) == 0 {
		return
	}
	h, first := b.next(toolReturnMessage), returns[0]
	if h.Name == nil {
		h.Name = given(b.m.ToolNames[first.ToolCallID])
	}
	b.count++
	b.approvals()
	b.add(h, ToolReturnMessage{MessageHead: h, ToolReturn: first.ToolReturn.Texts(), Status: first.Status,
		ToolCallID: first.ToolCallID, Stdout: first.Stdout, Stderr: first.Stderr, ToolReturns: returns})
}

// approvals adds the client's answers to the calls that this message has results for.
func (b *itemBuilder) approvals() {
	item := ApprovalsOf(b.m)
	if b.Made || len(item.Approvals) == 0 {
		return
	}
	if item.MessageHead = b.next(approvalAnswerMessage); b.m.OTID != nil {
		item.OTID = b.m.OTID
	}
	item.StepID = nil // the step is that of the call; the client answered outside of any
	b.add(item.MessageHead, item)
}

// ApprovalsOf returns the client's answers to the calls that a message has results for.
func ApprovalsOf(m recall.Message) (all ApprovalResponse) {
	for _, p := range m.Content {
		if a := ApprovalOf(p); p.Approval == recall.Returned {
			all.Approvals = append(all.Approvals, ApprovalAnswer{returnOf(p)})
		} else if a != nil {
			if all.Approve == nil {
				all.Approve, all.RequestID, all.Reason = &a.Approve, &a.ToolCallID, a.Reason
			}
			all.Approvals = append(all.Approvals, ApprovalAnswer{*a})
		}
	}
	return all
}

// ApprovalOf returns the approval or denial of the call that a result answers; nil if there was none.
func ApprovalOf(p recall.Part) *ApprovalReturn {
	switch p.Approval {
	case recall.Approved:
		return &ApprovalReturn{Type: "approval", Approve: true, ToolCallID: p.CallID}
	case recall.Denied:
		return &ApprovalReturn{Type: "approval", ToolCallID: p.CallID, Reason: given(loop.DenialReason(p.Text))}
	}
	return nil
}

func returnOf(p recall.Part) ToolReturn {
	return ToolReturn{Type: "tool", ToolCallID: p.CallID, Status: StatusOf(p), Stdout: p.Stdout, Stderr: p.Stderr,
		Orphan: p.Orphan, ToolReturn: returned(p), Clip: (*ClippedText)(p.Clip)}
}

// StatusOf returns the status of a tool's result.
func StatusOf(p recall.Part) string {
	if p.IsError {
		return "error"
	}
	return "success"
}

// returned returns the texts and images of a tool's result; at least one text.
func returned(p recall.Part) Content {
	if p.Envelope != nil && p.Envelope.Raw && len(p.Images) == 0 {
		return Content{textPart(pythonText(p.Text))}
	}
	c := ContentOf(p.Returned())
	if len(p.ImagesAt) == 0 && p.Text == "" {
		c = append(Content{textPart("")}, c...)
	}
	return c
}

// ContentOf returns the texts and images among parts.
func ContentOf(parts []recall.Part) (c Content) {
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

// given returns a pointer to a value; nil for the zero value.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
