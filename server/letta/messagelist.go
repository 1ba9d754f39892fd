package letta

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// MessagePaging is how a caller asks for a stretch of a list of messages, oldest first in every answer.
type MessagePaging struct {
	Before string `query:"before" doc:"Messages older than the one with this id, those next to it."`
	After  string `query:"after" doc:"Messages newer than the one with this id, those next to it. An id that is not in the list gives an empty page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"How many messages at most; one may be shown as several items. 100 if absent."`
	Order  string `query:"order" enum:"asc,desc" doc:"Without before and after: the oldest messages, or the newest (if absent). The oldest of them always comes first."`
}

// Page is the stretch, which comes reversed where newestFirst. Whoever goes on from the last item with after, or from the first with
// before, meets each message once.
func (p MessagePaging) Page() (page db.Page, newestFirst bool) {
	page = db.Page{Before: p.Before, After: p.After, Limit: cmp.Or(p.Limit, DefaultMessages), Ascending: true}
	switch {
	case p.Before != "" && p.After != "": // in descending order the one is the other
		page.Before, page.After, page.Ascending = p.After, p.Before, false
	case p.Before == "" && p.After == "":
		page.Ascending = p.Order == rest.OldestFirst
	}
	return page, !page.Ascending
}

// DefaultMessages is Letta's.
const DefaultMessages = 100

// MessageTypes are the items that a caller wants to see.
type MessageTypes struct {
	Types []string `query:"include_return_message_types,explode" enum:"system_message,user_message,assistant_message,reasoning_message,hidden_reasoning_message,tool_call_message,tool_return_message,approval_request_message,approval_response_message,summary_message,event_message" doc:"Only items of these types."`
}

// SpeechTool is how a caller wants to see the tool by which older agents speak.
type SpeechTool struct {
	Speech   rest.Opt[bool] `query:"use_assistant_message" deprecated:"true" doc:"Shows calls of send_message as what the agent said, and leaves out what they returned. True if absent."`
	Tool     string         `query:"assistant_message_tool_name" deprecated:"true"`
	Argument string         `query:"assistant_message_tool_kwarg" deprecated:"true"`
}

// ItemOptions is how items are made for a caller.
func (t SpeechTool) Options(types []string) ItemOptions {
	if t.Speech.Set && !t.Speech.Value {
		return ItemOptions{Types: types}
	}
	return ItemOptions{Types: types, Speaker: cmp.Or(t.Tool, speechTool), Argument: cmp.Or(t.Argument, speechArgument)}
}

// FilterByType narrows a list to messages that may be shown as items of the types; false if none can be.
func FilterByType(types []string, f *recall.MessageFilter) bool {
	parts := map[string][]recall.PartType{
		assistantMessage:       {recall.Text, recall.Image, recall.ToolCall}, // a call may be what the agent said
		reasoningMessage:       {recall.Reasoning, recall.SummarizedReasoning},
		hiddenReasoningMessage: {recall.RedactedReasoning, recall.OmittedReasoning},
		toolCallMessage:        {recall.ToolCall},
	}
	roles := map[string]recall.Role{systemMessage: recall.System, userMessage: recall.User, toolReturnMessage: recall.Tool,
		summaryMessage: recall.Summary, eventMessage: recall.Summary}
	for _, t := range types {
		if role, ok := roles[t]; ok {
			f.Roles = append(f.Roles, role)
		}
		if of, ok := parts[t]; ok {
			f.Roles, f.Parts = append(f.Roles, recall.Assistant), append(f.Parts, of...)
		}
	}
	return len(types) == 0 || len(f.Roles) > 0
}

// ItemsOf are the items of messages in their order, or in the opposite.
func ItemsOf(shown [][]MessageItem, reversed bool) []MessageItem {
	all := []MessageItem{}
	if reversed {
		slices.Reverse(shown)
	}
	for _, items := range shown {
		all = append(all, items...)
	}
	return all
}
