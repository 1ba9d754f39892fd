package letta

import (
	"cmp"
	"maps"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// MessagePaging selects a page of a list of messages. The oldest message of a page always comes first.
type MessagePaging struct {
	Before string `query:"before" doc:"Only messages that are older than this id."`
	After  string `query:"after" doc:"Only messages that are newer than this id."`

	Limit rest.Limit `query:"limit" minimum:"0" doc:"Of messages, at most 1,000; one may have several items. Absent: 100."`

	Order string `query:"order" enum:"asc,desc" doc:"Of them the oldest, or the newest. Absent: those next to before or after."` //nolint:lll // a tag is one line
}

// Page returns the page to read. newestFirst says that the store returns the page in reverse order. Without an order, a
// caller that continues with the last item as after, or with the first as before, gets each message once.
func (p MessagePaging) Page() (page db.Page, newestFirst bool) {
	page = db.Page{After: p.After, Until: p.Before, Limit: rest.LimitOf(p.Limit, DefaultMessages)}
	page.Ascending = p.Order == rest.OldestFirst || p.Order == "" && p.After != "" && p.Before == ""
	if !page.Ascending { // a descending page comes after newer messages
		page.After, page.Until = p.Before, p.After
	}
	return page, !page.Ascending
}

// DefaultMessages is the default page size for messages, as in Letta.
const DefaultMessages = 100

// MessageTypes selects items by type.
type MessageTypes struct {
	Types itemTypeNames `query:"include_return_message_types,explode"`
}

type itemTypeNames []string

func (itemTypeNames) Schema(rest.Registry) *rest.Schema {
	var names []any
	for _, name := range slices.Sorted(maps.Keys(itemTypes)) {
		names = append(names, name)
	}
	return &rest.Schema{Type: "array", Items: rest.Enum(names...), Nullable: true}
}

// SpeechTool says how to show calls of the tool that older agents speak with.
type SpeechTool struct {
	Speech   rest.Opt[bool] `query:"use_assistant_message" deprecated:"true" doc:"send_message as text; true if absent."`
	Tool     string         `query:"assistant_message_tool_name" deprecated:"true"`
	Argument string         `query:"assistant_message_tool_kwarg" deprecated:"true"`
}

// Options returns the options for making items.
func (t SpeechTool) Options(types []string) ItemOptions {
	if t.Speech.Set && !t.Speech.Value {
		return ItemOptions{Types: types}
	}
	return ItemOptions{Types: types, Speaker: cmp.Or(t.Tool, speechTool), Argument: cmp.Or(t.Argument, speechArgument)}
}

// FilterByType narrows a filter to messages that may have items of the given types. It reports whether any message may.
func FilterByType(types []string, f *recall.MessageFilter) bool {
	parts := map[string][]recall.PartType{
		assistantMessage: {recall.Text, recall.Image, recall.ToolCall},                // a call may be speech
		reasoningMessage: {recall.Reasoning, recall.SummarizedReasoning, recall.Text}, // a text may be a thought
		hiddenReasoningMessage: {recall.RedactedReasoning, recall.OmittedReasoning, recall.AnthropicBlock,
			recall.ResponsesItem},
		toolCallMessage: {recall.ToolCall}, approvalRequestMessage: {recall.ToolCall},
	}
	roles := map[string]recall.Role{systemMessage: recall.System, userMessage: recall.User, toolReturnMessage: recall.Tool,
		approvalAnswerMessage: recall.Tool,
		summaryMessage:        recall.Summary, eventMessage: recall.Summary}
	for _, t := range types {
		if role, ok := roles[t]; ok {
			f.Roles = append(f.Roles, role)
		}
		if partTypes, ok := parts[t]; ok {
			f.Roles, f.Parts = append(f.Roles, recall.Assistant), append(f.Parts, partTypes...)
		}
	}
	return len(types) == 0 || len(f.Roles) > 0
}

// ItemsOf joins the items of messages, in the given order of messages or in reverse.
func ItemsOf(shown [][]MessageItem, reversed bool) []MessageItem {
	if reversed {
		slices.Reverse(shown)
	}
	return append([]MessageItem{}, slices.Concat(shown...)...)
}
