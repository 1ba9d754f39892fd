package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// messageRoutes are those of messages and of conversations.
func (s *Server) messageRoutes(a *rest.API) {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete

	rest.Route(a, post, "/v1/agents/messages/search", "Search the messages of agents, as they are kept", s.searchInternal)
	rest.Route(a, get, "/v1/agents/{agent_id}/messages", "List an agent's messages", s.agentMessages)
	rest.Route(a, patch, "/v1/agents/{agent_id}/messages/{message_id}", "Refuse to change a message", s.changeMessage, rest.Deprecated)
	rest.Route(a, patch, "/v1/agents/{agent_id}/reset-messages", "Begin an agent's default conversation anew", s.resetMessages)

	rest.Route(a, get, "/v1/messages", "List the messages of all agents", s.allMessages)
	rest.Route(a, post, "/v1/messages/search", "Search messages", s.searchMessages)
	rest.Route(a, get, "/v1/messages/{message_id}", "Get a message", s.getMessage)

	rest.Route(a, post, "/v1/conversations", "Create a conversation", s.createConversation)
	rest.Route(a, get, "/v1/conversations", "List conversations", s.listConversations)
	rest.Route(a, get, "/v1/conversations/{conversation_id}", "Get a conversation", s.getConversation)
	rest.Route(a, patch, "/v1/conversations/{conversation_id}", "Change a conversation", s.updateConversation)
	rest.Route(a, del, "/v1/conversations/{conversation_id}", "Delete a conversation", s.deleteConversation)
	rest.Route(a, get, "/v1/conversations/{conversation_id}/messages", "List a conversation's messages", s.conversationMessages)
	rest.Route(a, post, "/v1/conversations/{conversation_id}/recompile", "Compile a conversation's system prompt anew", s.recompileConversation)
}

// MessagePaging is how a caller asks for a stretch of a list of messages, oldest first in every answer.
type MessagePaging struct {
	Before string `query:"before" doc:"Messages older than the one with this id, those next to it."`
	After  string `query:"after" doc:"Messages newer than the one with this id, those next to it. An id that is not in the list gives an empty page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" doc:"How many messages at most; one may be shown as several items. 100 if absent."`
	Order  string `query:"order" enum:"asc,desc" doc:"Without before and after: the oldest messages, or the newest (if absent). The oldest of them always comes first."`
}

// page is the stretch, which comes reversed where newestFirst. Whoever goes on from the last item with after, or from the first with
// before, meets each message once.
func (p MessagePaging) page() (page db.Page, newestFirst bool) {
	page = db.Page{Before: p.Before, After: p.After, Limit: cmp.Or(p.Limit, defaultMessages), Ascending: true}
	switch {
	case p.Before != "" && p.After != "": // in descending order the one is the other
		page.Before, page.After, page.Ascending = p.After, p.Before, false
	case p.Before == "" && p.After == "":
		page.Ascending = p.Order == rest.OldestFirst
	}
	return page, !page.Ascending
}

// defaultMessages is Letta's.
const defaultMessages = 100

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

// expansion is how items are made for a caller.
func (t SpeechTool) expansion(types []string) expansion {
	if t.Speech.Set && !t.Speech.Value {
		return expansion{types: types}
	}
	return expansion{types: types, speaker: cmp.Or(t.Tool, speechTool), said: cmp.Or(t.Argument, speechArgument)}
}

// sources narrows a list to messages that may be shown as items of the types; false if none can be.
func sources(types []string, f *recall.MessageFilter) bool {
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

// maxRead is the most messages that are read at once to find some that are shown.
const maxRead = 1000

// messages lists the items of a page of messages. The limit counts messages that are shown as something: an empty page is the end of the
// list.
func (s *Server) messages(ctx context.Context, f recall.MessageFilter, p db.Page, e expansion) ([][]MessageItem, error) {
	shown := [][]MessageItem{}
	if !sources(e.types, &f) {
		return shown, nil
	}
	backwards := p.Before != "" && p.After == "" // such a page is read from its end
	wanted := p.Limit
	for {
		rows, err := s.Recall.Messages(ctx, rest.Org(ctx), f, p)
		if err != nil {
			return nil, err
		}
		if e.speaker != "" {
			if e.spoken, err = s.Recall.ReturnsOf(ctx, rest.Org(ctx), e.speaker, rows); err != nil {
				return nil, err
			}
		}
		if backwards {
			slices.Reverse(rows)
		}
		for _, m := range rows {
			if items := e.of(m); len(items) > 0 && len(shown) < wanted {
				shown = append(shown, items)
			}
		}
		if len(shown) == wanted || len(rows) < p.Limit {
			break
		}
		if next := rows[len(rows)-1].ID; backwards {
			p.Before = next
		} else {
			p.After = next
		}
		p.Limit = min(2*p.Limit, maxRead)
	}
	if backwards {
		slices.Reverse(shown)
	}
	return shown, nil
}

// itemsOf are the items of messages in their order, or in the opposite.
func itemsOf(shown [][]MessageItem, reversed bool) []MessageItem {
	all := []MessageItem{}
	if reversed {
		slices.Reverse(shown)
	}
	for _, items := range shown {
		all = append(all, items...)
	}
	return all
}

// chronological lists a page from the oldest message to the newest, whatever was asked for.
func (s *Server) chronological(ctx context.Context, f recall.MessageFilter, p MessagePaging, e expansion) ([]MessageItem, error) {
	page, newestFirst := p.page()
	shown, err := s.messages(ctx, f, page, e)
	return itemsOf(shown, newestFirst), err
}

func (s *Server) agentMessages(ctx context.Context, in *struct {
	rest.OfAgent
	MessagePaging
	MessageTypes
	SpeechTool
	OrderBy      string `query:"order_by" enum:"created_at"`
	GroupID      string `query:"group_id"`
	Conversation string `query:"conversation_id" doc:"Of one conversation, or 'default'; of all if absent."`
	WithErrors   bool   `query:"include_err" doc:"Those that say what went wrong, too."`
}) ([]MessageItem, error) {
	f := recall.MessageFilter{AgentID: string(in.AgentID), Conversation: in.Conversation, GroupID: in.GroupID, WithErrors: in.WithErrors}
	if in.Conversation == f.AgentID {
		f.Conversation = recall.DefaultConversation
	}
	return s.chronological(ctx, f, in.MessagePaging, in.expansion(in.Types))
}

func (s *Server) allMessages(ctx context.Context, in *struct {
	MessagePaging
	MessageTypes
	Conversation rest.ConversationID `query:"conversation_id" doc:"Of one conversation; of all if absent. There is no one default conversation of all agents: name an agent's by the agent's id."`
}) ([]MessageItem, error) {
	if in.Conversation == recall.DefaultConversation {
		return []MessageItem{}, nil
	}
	agentID, id := in.Conversation.Of("")
	return s.chronological(ctx, recall.MessageFilter{AgentID: agentID, Conversation: id}, in.MessagePaging, SpeechTool{}.expansion(in.Types))
}

// getMessage shows calls as lists do; what they returned is there to be asked for.
func (s *Server) getMessage(ctx context.Context, in *struct {
	MessageID rest.MessageID `path:"message_id"`
}) ([]MessageItem, error) {
	m, err := s.Recall.Message(ctx, rest.Org(ctx), string(in.MessageID))
	if err != nil {
		return nil, err
	}
	return SpeechTool{}.expansion(nil).of(m), nil
}

// changeMessage refuses what Letta refuses: a message of the log never changes.
func (s *Server) changeMessage(ctx context.Context, in *struct {
	rest.OfAgent
	MessageID rest.MessageID `path:"message_id"`
	Body      struct{}
}) (rest.Null, error) {
	m, err := s.Recall.Message(ctx, rest.Org(ctx), string(in.MessageID))
	if err != nil {
		return rest.Null{}, err
	}
	if m.AgentID != string(in.AgentID) {
		return rest.Null{}, db.NotFound("Message with ID %s not found", in.MessageID)
	}
	return rest.Null{}, rest.NotAllowed(
		"Messages are never changed. To correct what was said, append a message; to begin anew, reset the agent's messages")
}

func (s *Server) resetMessages(ctx context.Context, in *struct {
	rest.OfAgent
	Body struct {
		AddDefault bool `json:"add_default_initial_messages,omitempty" doc:"Heeded by Letta; an agent here begins with its system prompt alone."`
	}
}) (AgentState, error) {
	a, err := s.Agents.Reset(ctx, rest.Org(ctx), string(in.AgentID))
	return s.shown(ctx, a, err)
}
