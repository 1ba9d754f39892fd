package server

import (
	"context"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) messageRoutes(a *rest.API) {
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/expand/{clip_id}",
		"expand_clip: Read a clipped text, or a range of the log.", s.expand, rest.Own)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/messages",
		"list_agent_messages: List an agent's messages. A page is in the order of time, whatever the order of the pages.",
		s.agentMessages)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/messages/{message_id}",
		"update_message: Refuse to change a message. Messages never change: always a 405 for a message that exists.",
		s.changeMessage,
		rest.Deprecated)
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/reset-messages",
		"reset_messages: Hide the messages of an agent's default conversation. The log keeps what was said.", s.resetMessages,
		rest.Slow(handoverTimeout))
	rest.Get(a.For(rest.Read), "/v1/messages", "list_messages: List the messages of all agents.", s.allMessages)
	rest.Get(a.For(rest.Read), "/v1/messages/{message_id}",
		"get_message: Get a message. The items that lists show of it.", s.getMessage)
}

// messages returns the items of each message on a page. The page's limit counts only messages that have items. A
// conversation's current system prompt stands in the place of its first, as in Letta; o.AllPrompts shows each where it
// was set.
func (s *Server) messages(
	ctx context.Context, f recall.MessageFilter, p db.Page, o letta.ItemOptions,
) ([][]letta.MessageItem, error) {
	if !letta.FilterByType(o.Types, &f) {
		return [][]letta.MessageItem{}, nil
	}
	var prompts map[int64]recall.ListedPrompt
	read := func(p db.Page) ([]recall.Message, error) {
		list, err := s.Recall.Messages(ctx, rest.Org(ctx), f, p)
		if err == nil && !o.AllPrompts {
			prompts, err = s.Recall.ListedPrompts(ctx, rest.Org(ctx), list)
		}
		if err != nil {
			return nil, err
		}
		return list, s.addSteps(ctx, list)
	}
	show := func(m recall.Message) []letta.MessageItem {
		if agent.IsWindowWarning(m) {
			return nil // it is for the model, and Letta has none
		}
		if p, ok := prompts[m.Key]; ok && !p.First {
			return nil
		} else if ok {
			m.Content = p.Current
		}
		return o.Items(m)
	}
	return rest.FillPage(p, func(m recall.Message) string { return m.ID }, read, show)
}

// addSteps sets the step of users' and system messages that a run was sent: the run's first, as in Letta. The log has
// none for them.
func (s *Server) addSteps(ctx context.Context, list []recall.Message) error {
	sent := func(m recall.Message) bool {
		return m.StepID == nil && m.RunID != nil && (m.Role == recall.User || m.Role == recall.System)
	}
	var runs []string
	for _, m := range list {
		if sent(m) {
			runs = append(runs, *m.RunID)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	steps, err := s.Loop.FirstSteps(ctx, rest.Org(ctx), runs)
	for i, m := range list {
		if !sent(m) {
			continue
		}
		if step, ok := steps[*m.RunID]; ok {
			list[i].StepID = &step
		}
	}
	return err
}

// chronological returns the items of a page from the oldest message to the newest, whatever the order of the page.
func (s *Server) chronological(
	ctx context.Context, f recall.MessageFilter, p letta.MessagePaging, o letta.ItemOptions,
) ([]letta.MessageItem, error) {
	page, newestFirst := p.Page()
	shown, err := s.messages(ctx, f, page, o)
	return letta.ItemsOf(shown, newestFirst), err
}

func (s *Server) agentMessages(ctx context.Context, input *struct {
	rest.OfAgent
	letta.MessagePaging
	letta.MessageTypes
	letta.SpeechTool
	OrderBy      string         `query:"order_by" enum:"created_at"`
	GroupID      string         `query:"group_id"`
	Conversation string         `query:"conversation_id" doc:"Of one conversation, or 'default'; of all if absent."`
	WithErrors   bool           `query:"include_err" doc:"Those that say what went wrong, too."`
	WithFlushes  bool           `query:"include_flush" doc:"Those of silent turns, too; their purpose is flush."`
	WithReset    rest.Opt[bool] `query:"include_reset" doc:"Those that reset-messages hid, too; true if absent."`
	AllPrompts   bool           `query:"include_prompts" doc:"Each system prompt where it was set, not only the current."`
}) ([]letta.MessageItem, error) {
	f := recall.MessageFilter{AgentID: string(input.AgentID), Conversation: input.Conversation, GroupID: input.GroupID,
		WithErrors: input.WithErrors, WithFlushes: input.WithFlushes}
	f.WithReset = !input.WithReset.Set || input.WithReset.Value
	if input.Conversation == f.AgentID {
		f.Conversation = recall.DefaultConversation
	}
	o := input.Options(input.Types)
	o.AllPrompts = input.AllPrompts
	return s.chronological(ctx, f, input.MessagePaging, o)
}

func (s *Server) allMessages(ctx context.Context, input *struct {
	letta.MessagePaging
	letta.MessageTypes
	Conversation rest.ConversationID `query:"conversation_id" doc:"Of this conversation, or an agent's default one."`
}) ([]letta.MessageItem, error) {
	if input.Conversation == recall.DefaultConversation {
		return []letta.MessageItem{}, nil
	}
	agentID, id := input.Conversation.Of("")
	f := recall.MessageFilter{AgentID: agentID, Conversation: id}
	return s.chronological(ctx, f, input.MessagePaging, letta.SpeechTool{}.Options(input.Types))
}

// getMessage shows a message as lists do. It also shows results and system prompts that lists leave out.
func (s *Server) getMessage(ctx context.Context, input *struct {
	MessageID rest.MessageID `path:"message_id"`
}) ([]letta.MessageItem, error) {
	m, err := s.Recall.Message(ctx, rest.Org(ctx), string(input.MessageID))
	if err != nil {
		return nil, err
	}
	o, one := letta.SpeechTool{}.Options(nil), []recall.Message{m}
	o.WithSpoken = true
	if err := s.addSteps(ctx, one); err != nil {
		return nil, err
	}
	prompts, err := s.Recall.ListedPrompts(ctx, rest.Org(ctx), one)
	if p := prompts[m.Key]; p.First {
		one[0].Content = p.Current
	}
	return o.Items(one[0]), err
}

// changeMessage refuses the change: messages of the log never change. Letta has this operation, and refuses the same.
func (s *Server) changeMessage(ctx context.Context, input *struct {
	rest.OfAgent
	MessageID rest.MessageID `path:"message_id"`
	Body      struct{}
}) (rest.Null, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(input.AgentID)); err != nil {
		return rest.Null{}, err
	}
	return rest.Null{}, rest.NotAllowed(
		"Messages are never changed. To correct one, append a message; to start over, reset the agent's messages")
}

func (s *Server) resetMessages(ctx context.Context, input *struct {
	rest.OfAgent
	Body struct {
		AddDefault rest.Opt[bool] `json:"add_default_initial_messages,omitzero" doc:"Ignored: there is only a prompt."`
	}
}) (letta.AgentState, error) {
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), string(input.AgentID), recall.DefaultConversation)
	if err != nil {
		return letta.AgentState{}, err
	}
	if _, err := s.Loop.Stop(ctx, rest.Org(ctx), c.ID, nil); err != nil {
		return letta.AgentState{}, err
	}
	if err := s.endSession(ctx, c, agent.OnReset); err != nil {
		return letta.AgentState{}, err
	}
	a, err := s.Agents.Reset(ctx, rest.Org(ctx), string(input.AgentID))
	return s.shown(ctx, a, err)
}

func (s *Server) expand(ctx context.Context, input *struct {
	rest.OfAgent
	ClipID  rest.ClipID `path:"clip_id" doc:"Of a clipped text or a message, or a range of the log: seq 120-188."`
	Offset  int         `query:"offset" minimum:"0" doc:"In bytes."`
	Limit   int         `query:"limit" minimum:"1" maximum:"1048576" doc:"In bytes; 16,000 if absent."`
	Pattern string      `query:"pattern" doc:"A regular expression of RE2. Its lines are returned, not the text."`
}) (recall.Expansion, error) {
	return s.Recall.Expand(ctx, rest.Org(ctx), string(input.AgentID),
		recall.ExpandQuery{ID: string(input.ClipID), Offset: input.Offset, Limit: input.Limit, Pattern: input.Pattern,
			Reach: recall.Reach{Users: db.AllUsers()}})
}
