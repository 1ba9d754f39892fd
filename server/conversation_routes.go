package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/pastsession"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) conversationRoutes(a *rest.API) {
	rest.Post(a.For(rest.Write), "/v1/conversations",
		"create_conversation: Create a conversation. It has a system prompt of its own, and shares the agent's memory.",
		s.createConversation, rest.OfUsers)
	rest.Get(a.For(rest.Read), "/v1/conversations", "list_conversations: List conversations.", s.listConversations,
		rest.OfUsers)
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/conversations",
		"create_agent_conversation: Create a conversation of an agent, as the agent's key.", s.createAgentConversation,
		rest.Own, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/conversations",
		"list_agent_conversations: List the conversations of an agent.", s.listAgentConversations, rest.Own, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/conversations/{conversation_id}",
		"get_conversation: Get a conversation.", s.getConversation, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/conversations/{conversation_id}/messages",
		"list_conversation_messages: List a conversation's messages.", s.conversationMessages, rest.OfUsers)
	rest.Patch(a.For(rest.Write), "/v1/conversations/{conversation_id}",
		"update_conversation: Change a conversation. Fields that are absent stay.",
		s.updateConversation, rest.Slow(handoverTimeout))
	rest.Get(a.For(rest.ReadAgent), "/v1/conversations/{conversation_id}/ask",
		"ask_session: Ask a conversation a question. The answer is found in its log, and cites the positions that it rests "+
			"on; without a model it is the passages that fit best.",
		s.askSession, rest.Slow(handoverTimeout), rest.Own, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/conversations/{conversation_id}/flushes",
		"list_flushes: List the silent turns of a conversation in which its model wrote to memory, the newest first.",
		s.listFlushes, rest.Own)
	rest.Delete(a.For(rest.Write), "/v1/conversations/{conversation_id}", "delete_conversation: Delete a conversation.",
		s.deleteConversation)
	rest.Post(a.For(rest.Write), "/v1/conversations/{conversation_id}/fork",
		"fork_conversation: Copy a conversation to a new one. Each then goes on by itself.", s.forkConversation)
	rest.Post(a.For(rest.Write), "/v1/conversations/{conversation_id}/summarize-branch",
		"summarize_branch: Tell a conversation what was said in another branch of it, which was left: a summary of that "+
			"branch from where both part is appended as a message of the system.", s.summarizeBranch,
		rest.Slow(handoverTimeout), rest.Own)
	rest.Put(a.For(rest.Tools), "/v1/conversations/{conversation_id}/hold",
		"update_hold: Say that a plan of several steps is under way in a conversation. Under a policy with the step "+
			"quiet_point a compaction waits for its end, until then at most. A second request moves the time.",
		s.holdCompaction, rest.Own)
	rest.Delete(a.For(rest.Tools), "/v1/conversations/{conversation_id}/hold",
		"delete_hold: Say that the plan of a conversation has ended.", s.releaseCompaction, rest.Own)
	rest.Post(a.For(rest.Write), "/v1/conversations/{conversation_id}/recompile",
		"recompile_conversation: Compile a conversation's system prompt again. The answer is the prompt.",
		s.recompileConversation)
}

// conversations returns conversations in Letta's shape.
func (s *Server) conversations(ctx context.Context, list ...recall.Conversation) ([]letta.Conversation, error) {
	visible, err := s.Recall.VisibleIDs(ctx, rest.Org(ctx), list...)
	if err != nil {
		return nil, err
	}
	identities, err := s.Agents.ConversationIdentities(ctx, rest.Org(ctx), list...)
	shown := make([]letta.Conversation, len(list))
	for i, c := range list {
		shown[i] = letta.Conversation{Conversation: c, InContext: append([]string{}, visible[c.Key]...),
			Archived: c.ArchivedAt != nil, IsolatedBlockIDs: []string{}}
		if id := identities[c.Key]; id != "" {
			shown[i].IdentityID = &id
		}
	}
	return shown, err
}

// conversation returns a conversation in Letta's shape. It returns err if that is not nil.
func (s *Server) conversation(ctx context.Context, c recall.Conversation, err error) (letta.Conversation, error) {
	if err != nil {
		return letta.Conversation{}, err
	}
	shown, err := s.conversations(ctx, c)
	return shown[0], err
}

func (s *Server) createConversation(ctx context.Context, input *struct {
	AgentID string `query:"agent_id" required:"true"`
	Body    letta.CreateConversation
}) (letta.Conversation, error) {
	return s.newConversation(ctx, input.AgentID, input.Body)
}

func (s *Server) createAgentConversation(ctx context.Context, input *struct {
	rest.OfAgent
	Body letta.CreateConversation
}) (letta.Conversation, error) {
	return s.newConversation(ctx, string(input.AgentID), input.Body)
}

// newConversation creates a conversation of an agent: with the user for whom the request works, if it works for one.
func (s *Server) newConversation(ctx context.Context, agentID string, body letta.CreateConversation) (
	letta.Conversation, error) {
	user, err := s.conversationUser(ctx, agentID, body)
	if err != nil {
		return letta.Conversation{}, err
	}
	n, err := body.New()
	if err != nil {
		return letta.Conversation{}, err
	}
	n.Compaction, err = s.Agents.ConversationSettings(ctx, rest.Org(ctx), agentID, nil, body.Settings())
	if err != nil {
		return letta.Conversation{}, err
	}
	if string(n.Compaction) == "null" {
		n.Compaction = nil
	}
	c, err := s.Agents.CreateConversation(ctx, rest.Org(ctx), agentID,
		agent.NewConversation{NewConversation: n, IdentityID: body.IdentityID.Value, User: user})
	return s.conversation(ctx, c, err)
}

// conversationUser returns the user with whom a conversation is created; empty if the request names none, or names it
// as an identity.
func (s *Server) conversationUser(ctx context.Context, agentID string, body letta.CreateConversation) (string, error) {
	users, err := s.users(ctx, rest.Opt[string]{})
	if err != nil || users.All() {
		if body.UserID.Set && !body.UserID.Null && strings.TrimSpace(body.UserID.Value) == "" {
			return "", rest.Unprocessable("body.user_id", "it is blank; give the id or the identifier_key of an identity")
		}
		if body.UserID.Value != "" && body.IdentityID.Value != "" {
			return "", rest.Unprocessable("body.user_id", "user_id and identity_id both say whom the conversation is with: "+
				"give one of them")
		}
		return body.UserID.Value, err
	}
	if err := s.checkUser(ctx, rest.Caller(ctx), rest.UserRequest{AgentID: agentID}); err != nil {
		return "", err
	}
	for _, named := range []rest.Opt[string]{body.UserID, body.IdentityID} {
		if _, err := s.users(ctx, named); err != nil {
			return "", err
		}
	}
	i, err := s.Agents.IdentityByKey(ctx, rest.Org(ctx), users.User())
	return i.ID, err
}

func (s *Server) getConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
}) (letta.Conversation, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	return s.conversation(ctx, c, err)
}

func (s *Server) forkConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Hidden    bool   `query:"hidden" doc:"Lists leave the copy out."`
	MessageID string `query:"message_id" doc:"The last message that is copied; all are if absent."`
}) (letta.Conversation, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return letta.Conversation{}, err
	}
	c, err = s.Agents.Fork(ctx, rest.Org(ctx), c, agent.ForkTo{MessageID: input.MessageID, Hidden: input.Hidden,
		Ran: s.Tools.Runs})
	return s.conversation(ctx, c, err)
}

func (s *Server) summarizeBranch(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Body struct {
		Branch string `json:"branch" minLength:"1" doc:"The id of the conversation that was left, or \"default\"."`
	}
}) (agent.BranchSummary, error) {
	target, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return agent.BranchSummary{}, err
	}
	branch, err := s.Recall.Conversation(ctx, rest.Org(ctx), target.AgentID, input.Body.Branch)
	if err != nil {
		return agent.BranchSummary{}, err
	}
	return s.Agents.SummarizeBranch(ctx, rest.Org(ctx), target, branch)
}

func (s *Server) holdCompaction(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Body struct {
		Seconds int `json:"seconds,omitempty" minimum:"1" maximum:"86400" default:"600" doc:"How long, if nobody ends it."`
	}
}) (letta.Conversation, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return letta.Conversation{}, err
	}
	c, err = s.Agents.Hold(ctx, rest.Org(ctx), c, time.Duration(input.Body.Seconds)*time.Second)
	return s.conversation(ctx, c, err)
}

func (s *Server) releaseCompaction(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
}) (letta.Conversation, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return letta.Conversation{}, err
	}
	c, err = s.Agents.Hold(ctx, rest.Org(ctx), c, 0)
	return s.conversation(ctx, c, err)
}

func (s *Server) listConversations(ctx context.Context, input *struct {
	AgentID string `query:"agent_id"`
	letta.ConversationFilter
	OfUser
	rest.Paging
}) ([]letta.Conversation, error) {
	f := input.Filter()
	f.AgentID = input.AgentID
	return s.conversationsOf(ctx, f, input.UserID, input.Page(50, rest.NewestFirst))
}

func (s *Server) listAgentConversations(ctx context.Context, input *struct {
	rest.OfAgent
	letta.ConversationFilter
	OfUser
	rest.Paging
}) ([]letta.Conversation, error) {
	f := input.Filter()
	f.AgentID = string(input.AgentID)
	if _, err := db.AgentKey(ctx, s.DB, rest.Org(ctx), f.AgentID); err != nil {
		return nil, err
	}
	return s.conversationsOf(ctx, f, input.UserID, input.Page(50, rest.NewestFirst))
}

// conversationsOf lists the conversations that a filter selects, those with a named user and with nobody.
func (s *Server) conversationsOf(ctx context.Context, f recall.ConversationFilter, user rest.Opt[string], p db.Page) (
	[]letta.Conversation, error) {
	var err error
	if f.Users, err = s.users(ctx, user); err != nil {
		return nil, err
	}
	list, err := s.Recall.Conversations(ctx, rest.Org(ctx), f, p)
	if err != nil {
		return nil, err
	}
	return s.conversations(ctx, list...)
}

func (s *Server) askSession(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Question string `query:"question" required:"true" doc:"With the names and words that may have been said there."`
	Limit    int    `query:"limit" minimum:"1" maximum:"20" default:"5" doc:"Passages."`
}) (pastsession.SessionAnswer, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return pastsession.SessionAnswer{}, err
	}
	zone, err := s.Agents.Zone(ctx, rest.Org(ctx), c.AgentID)
	if err != nil {
		return pastsession.SessionAnswer{}, err
	}
	sessions := pastsession.Store{Recall: s.Recall, Models: s.Agents.Compaction.Models}
	return sessions.Ask(ctx, rest.Org(ctx), pastsession.Question{AgentID: c.AgentID, Conversation: c.ID,
		Users: db.AllUsers(),
		Text:  input.Question, Passages: input.Limit, Zone: zone})
}

func (s *Server) listFlushes(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]agent.Flush, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return nil, err
	}
	return s.Agents.Flushes(ctx, rest.Org(ctx), c, input.Limit)
}

func (s *Server) updateConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Body struct {
		letta.ConversationFields
		AgentID       rest.Opt[string] `json:"agent_id,omitzero"`
		Archived      rest.Opt[bool]   `json:"archived,omitzero"`
		LastMessageAt rest.Opt[string] `json:"last_message_at,omitzero" doc:"ISO 8601; else in the agent's timezone."`
	}
}) (letta.Conversation, error) {
	b := input.Body
	c, err := s.named(ctx, input.OfConversation, input.AgentID, b.AgentID.Value)
	if err != nil {
		return letta.Conversation{}, err
	}
	zone, err := s.Agents.Zone(ctx, rest.Org(ctx), c.AgentID)
	if err != nil {
		return letta.Conversation{}, err
	}
	last, err := recall.ParseStart(b.LastMessageAt.Value, zone)
	if err != nil {
		return letta.Conversation{}, rest.Unprocessable("body.last_message_at",
			"expected a time in the form of ISO 8601, such as 2026-01-31T18:05:00Z")
	}
	u, err := b.Update()
	if err != nil {
		return letta.Conversation{}, err
	}
	isEnding := b.Archived.Value && c.ArchivedAt == nil
	if u.LastMessageAt = last; !isEnding {
		u.Archived = b.Archived.Pointer()
	}
	c, err = s.Agents.UpdateConversation(ctx, rest.Org(ctx), c, agent.ConversationChange{ConversationUpdate: u,
		Settings: b.Settings(), Identity: b.Identity()})
	if err != nil || !isEnding {
		return s.conversation(ctx, c, err)
	}
	if err := s.endSession(ctx, c, agent.OnArchive); err != nil {
		return letta.Conversation{}, err
	}
	c, err = s.Recall.UpdateConversation(ctx, rest.Org(ctx), c.ID, recall.ConversationUpdate{Archived: &isEnding})
	return s.conversation(ctx, c, err)
}

func (s *Server) deleteConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
}) (rest.Null, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return rest.Null{}, err
	}
	if _, err := s.Loop.Stop(ctx, rest.Org(ctx), c.ID, nil); err != nil {
		return rest.Null{}, err
	}
	return rest.Null{}, s.Recall.DeleteConversation(ctx, rest.Org(ctx), c.ID)
}

// conversationMessages lists messages in the order of the page. For a default conversation it lists the same messages
// as the agent's list.
func (s *Server) conversationMessages(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	rest.Paging
	letta.MessageTypes
	letta.SpeechTool
	OrderBy     string `query:"order_by" enum:"created_at"`
	GroupID     string `query:"group_id"`
	WithErrors  bool   `query:"include_err" doc:"Those that say what went wrong, too."`
	WithFlushes bool   `query:"include_flush" doc:"Those of silent turns, too; their purpose is flush."`
	AllPrompts  bool   `query:"include_prompts" doc:"Each system prompt where it was set, not only the current."`
}) ([]letta.MessageItem, error) {
	agentID, id := input.ConversationID.Of(input.AgentID)
	f := recall.MessageFilter{AgentID: agentID, Conversation: id, GroupID: input.GroupID, WithErrors: input.WithErrors,
		WithFlushes: input.WithFlushes}
	o := input.Options(input.Types)
	o.AllPrompts = input.AllPrompts
	switch {
	case id == recall.DefaultConversation && agentID == "":
		return []letta.MessageItem{}, nil
	case id == recall.DefaultConversation:
		return s.chronological(ctx, f, letta.MessagePaging(input.Paging), o)
	}
	page := input.Page(letta.DefaultMessages, rest.NewestFirst)
	shown, err := s.messages(ctx, f, page, o)
	items := letta.ItemsOf(shown, !page.Ascending)
	if !page.Ascending { // the items of each message are reversed too
		slices.Reverse(items)
	}
	return items, err
}

func (s *Server) recompileConversation(ctx context.Context, input *struct {
	rest.OfConversation
	WithAgent
	Recompiling
	Body struct {
		AgentID rest.Opt[string] `json:"agent_id,omitzero"`
	}
}) (string, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID, input.Body.AgentID.Value)
	if err != nil {
		return "", err
	}
	return s.Agents.Recompile(ctx, rest.Org(ctx), c, input.Dry)
}
