package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) messageSearchRoutes(a *rest.API) {
	rest.Post(a.For(rest.Read), "/v1/agents/messages/search",
		"search_agent_messages: Search the messages of agents, with tool calls and results. By meaning and by words.",
		s.searchInternal, rest.OfUsers)
	rest.Post(a.For(rest.Read), "/v1/messages/search",
		"search_messages: Search messages. Texts of users and agents, by meaning and by words.", s.searchMessages,
		rest.OfUsers)
}

// searchMode returns the mode of ranking. ErrNoEndpoint if the mode is by meaning and there is no embedding model.
func (s *Server) searchMode(mode string) (recall.Mode, error) {
	if recall.Mode(mode) == recall.ByMeaning && s.Endpoint == nil {
		return "", recall.ErrNoEndpoint
	}
	return recall.Mode(mode), nil
}

// query turns a request into a search.
func (s *Server) query(ctx context.Context, input letta.MessageQuery, text string) (recall.Query, error) {
	agentID, conversation := rest.ConversationID(input.Conversation.Value).Of(input.AgentID.Value)
	q := recall.Query{Text: text, AgentID: agentID, Conversation: conversation, Mode: recall.Mode(input.Mode.Value),
		Limit: cmp.Or(input.Limit.Value, letta.DefaultFound), Offset: input.Offset.Value, After: input.After.Value,
		WithReset: input.WithReset.Value, Filter: json.RawMessage(input.Filter), ByTime: input.ByTime(),
		Roles: rest.Each(input.Roles.Value, func(role string) recall.Role { return recall.Role(role) })}
	if q.Conversation == recall.DefaultConversation && q.AgentID == "" {
		return q, rest.Unprocessable("body.agent_id", "required where the conversation is named 'default'")
	}
	if agentID == "" && conversation != "" {
		c, err := s.Recall.Conversation(ctx, rest.Org(ctx), "", conversation)
		if err != nil && !errors.Is(err, db.ErrNotFound) { // the search reports a conversation that does not exist
			return q, err
		}
		agentID = c.AgentID
	}
	var err error
	if q.Users, err = s.users(ctx, input.UserID); err != nil {
		return q, err
	}
	if q.Zone, err = s.Agents.Zone(ctx, rest.Org(ctx), agentID); err != nil {
		return q, err
	}
	if q.Start, err = recall.ParseStart(input.Start.Value, q.Zone); err != nil {
		return q, rest.Unprocessable("body.start_date", err.Error())
	}
	if q.End, err = recall.ParseEnd(input.End.Value, q.Zone); err != nil {
		return q, rest.Unprocessable("body.end_date", err.Error())
	}
	rest.Warn(ctx, letta.SpanWarnings(q.Start, q.End)...)
	return q, nil
}

// searchMessages finds texts of users and agents. The operation /v1/agents/messages/search also finds tool calls and
// results.
func (s *Server) searchMessages(ctx context.Context, input *struct {
	letta.Explained
	Body struct {
		letta.MessageQuery
		Query string `json:"query"`
	}
}) ([]letta.FoundMessage, error) {
	q, err := s.query(ctx, input.Body.MessageQuery, input.Body.Query)
	if err != nil {
		return nil, err
	}
	q.Explain, q.Weight = input.Explain, input.Weight
	spoken := []recall.Role{recall.User, recall.Assistant}
	if len(q.Roles) == 0 {
		q.Roles = spoken
	}
	for i, role := range q.Roles {
		if !slices.Contains(spoken, role) {
			return nil, rest.Unprocessable(fmt.Sprintf("body.roles[%d]", i), "expected 'user' or 'assistant'; "+
				"POST /v1/agents/messages/search searches the messages of all roles")
		}
	}
	offset, end, found, more := q.Offset, q.Offset+q.Limit, []letta.FoundMessage{}, true
	q.Limit, q.Offset = 0, 0
	var results recall.Results
	for ; more && len(found) < end; q.Offset += q.Limit { // some messages yield no result, and some yield several
		// It reads no more than it answers, because messages may be long, and more each time where they yield nothing.
		q.Limit = min(max(end-len(found), 2*q.Limit), recall.SearchMax)
		if results, err = s.Recall.Search(ctx, rest.Org(ctx), q); err != nil {
			return nil, err
		}
		for _, h := range results.Hits {
			for _, f := range letta.FoundIn(h) {
				f.SearchedFor = results.SearchedFor
				found = append(found, f)
			}
		}
		more = results.More
	}
	results.Cut = results.Cut && len(found) <= end
	rest.Warn(ctx, results.Sentences()...)
	page := found[min(offset, len(found)):min(end, len(found))]
	letta.ExplainSearch(page, results.Explanation)
	return page, nil
}

func (s *Server) searchInternal(ctx context.Context, input *struct {
	letta.Explained
	Body struct {
		letta.MessageQuery
		Query rest.Opt[string] `json:"query,omitzero" doc:"The newest messages if absent."`
	}
}) ([]letta.FoundInternal, error) {
	q, err := s.query(ctx, input.Body.MessageQuery, input.Body.Query.Value)
	if err != nil {
		return nil, err
	}
	q.Explain, q.Weight = input.Explain, input.Weight
	results, err := s.Recall.Search(ctx, rest.Org(ctx), q)
	rest.Warn(ctx, results.Sentences()...)
	found := rest.Each(results.Hits, letta.FoundInternalOf)
	for i := range found {
		found[i].SearchedFor = results.SearchedFor
	}
	return found, err
}
