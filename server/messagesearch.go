package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// MessageQuery is what messages are searched by.
type MessageQuery struct {
	Mode         rest.Opt[string] `json:"search_mode,omitzero" enum:"vector,fts,hybrid" doc:"By meaning, by words, or by both (if absent). Without an embeddings endpoint there are only words."`
	AgentID      rest.Opt[string] `json:"agent_id,omitzero"`
	Conversation rest.Opt[string] `json:"conversation_id,omitzero" doc:"Of one conversation, or 'default' of the agent."`
	Limit        rest.Opt[int]    `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"50 if absent."`
	Start        rest.Opt[string] `json:"start_date,omitzero" doc:"ISO 8601; without an offset in the agent's timezone, or UTC where no agent is named."`
	End          rest.Opt[string] `json:"end_date,omitzero" doc:"The last moment of the day, minute or second that it names."`
}

// foundMessages is how many messages a search finds where it is not told.
const foundMessages = 50

// query is a search for text by what a caller asks for.
func (s *Server) query(ctx context.Context, in MessageQuery, text string) (recall.Query, error) {
	agentID, conversation := rest.ConversationID(in.Conversation.Value).Of(in.AgentID.Value)
	q := recall.Query{Text: text, AgentID: agentID, Conversation: conversation, Mode: recall.Mode(in.Mode.Value),
		Limit: cmp.Or(in.Limit.Value, foundMessages), Zone: time.UTC}
	if q.Conversation == recall.DefaultConversation && q.AgentID == "" {
		return q, rest.Unprocessable("body.agent_id", "required where the conversation is named 'default'")
	}
	if q.AgentID != "" {
		a, err := s.Agents.Agent(ctx, rest.Org(ctx), q.AgentID)
		if err != nil {
			return q, err
		}
		q.Zone = a.Zone()
	}
	var err error
	if q.Start, err = recall.ParseStart(in.Start.Value, q.Zone); err != nil {
		return q, rest.Unprocessable("body.start_date", err.Error())
	}
	if q.End, err = recall.ParseEnd(in.End.Value, q.Zone); err != nil {
		return q, rest.Unprocessable("body.end_date", err.Error())
	}
	return q, nil
}

// search searches by words where there is nothing to search by meaning with.
func (s *Server) search(ctx context.Context, q recall.Query) (recall.Results, error) {
	results, err := s.Recall.Search(ctx, rest.Org(ctx), q)
	if q.Mode == recall.ByMeaning && (errors.Is(err, db.ErrInvalid) || err == nil && len(results.Hits) == 0 && results.Ranked != recall.ByMeaning) {
		q.Mode = recall.ByWords
		return s.Recall.Search(ctx, rest.Org(ctx), q)
	}
	return results, err
}

// FoundMessage is a thing that was said or thought in a message that a search found.
type FoundMessage struct {
	MessageType    string    `json:"message_type" enum:"system_message,user_message,assistant_message,reasoning_message"`
	Content        *string   `json:"content,omitempty" doc:"Of all but a reasoning_message."`
	Reasoning      *string   `json:"reasoning,omitempty" doc:"Of a reasoning_message."`
	MessageID      string    `json:"message_id"`
	CreatedAt      time.Time `json:"created_at"`
	AgentID        string    `json:"agent_id"`
	ConversationID *string   `json:"conversation_id" doc:"Null for the agent's default conversation."`
	Score          float64   `json:"score"`
	Position       int       `json:"position" doc:"Of the message in its conversation, from 1 without a gap."`
	Seq            int64     `json:"seq" doc:"Of the message among the agent's events."`
}

// searchMessages finds what was said. Messages that only call tools, and what these returned, are found by /v1/agents/messages/search.
func (s *Server) searchMessages(ctx context.Context, in *struct {
	Body struct {
		MessageQuery
		Query string `json:"query"`
	}
}) ([]FoundMessage, error) {
	q, err := s.query(ctx, in.Body.MessageQuery, in.Body.Query)
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	q.Limit, q.Roles = recall.SearchMax, []recall.Role{recall.User, recall.Assistant} // some of them say nothing
	results, err := s.search(ctx, q)
	found := []FoundMessage{}
	for _, h := range results.Hits {
		found = append(found, foundIn(h)...)
	}
	return found[:min(len(found), limit)], err
}

// foundIn are the things that a message says or thinks.
func foundIn(h recall.Hit) (found []FoundMessage) {
	for _, item := range (SpeechTool{}).expansion(nil).of(h.Message) {
		f := FoundMessage{MessageID: h.ID, CreatedAt: h.CreatedAt, AgentID: h.AgentID, ConversationID: h.ConversationID, Score: h.Score,
			Position: h.Position, Seq: h.Seq}
		switch item := item.value.(type) {
		case UserMessage:
			f.MessageType, f.Content = item.MessageType, new(item.Content.texts())
		case AssistantMessage:
			f.MessageType, f.Content = item.MessageType, new(item.Content.texts())
		case ReasoningMessage:
			f.MessageType, f.Reasoning = item.MessageType, &item.Reasoning
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// FoundInternal is a message that a search found, as it is kept.
type FoundInternal struct {
	Text        string          `json:"embedded_text" doc:"What the search found it by."`
	Message     InternalMessage `json:"message"`
	Score       float64         `json:"rrf_score"`
	WordsRank   *int            `json:"fts_rank" doc:"From 1; null if it shares no word with the query."`
	MeaningRank *int            `json:"vector_rank" doc:"From 1; null if it was not ranked by meaning."`
	Snippet     string          `json:"snippet"`
}

func (s *Server) searchInternal(ctx context.Context, in *struct {
	Body struct {
		MessageQuery
		Query rest.Opt[string]   `json:"query,omitzero" doc:"The newest messages if absent."`
		Roles rest.Opt[[]string] `json:"roles,omitzero" enum:"assistant,user,tool,function,system,approval,summary"`
	}
}) ([]FoundInternal, error) {
	q, err := s.query(ctx, in.Body.MessageQuery, in.Body.Query.Value)
	if err != nil {
		return nil, err
	}
	for _, role := range in.Body.Roles.Value {
		if slices.Contains(recall.Roles, recall.Role(role)) {
			q.Roles = append(q.Roles, recall.Role(role))
		}
	}
	found := []FoundInternal{}
	if len(in.Body.Roles.Value) > 0 && len(q.Roles) == 0 { // nobody here has such a role
		return found, nil
	}
	results, err := s.search(ctx, q)
	for _, h := range results.Hits {
		found = append(found, FoundInternal{Text: recall.Searched(h.Message), Message: internalMessage(h.Message), Score: h.Score,
			WordsRank: rank(h.WordsRank), MeaningRank: rank(h.MeaningRank), Snippet: h.Snippet})
	}
	return found, err
}

// rank is a rank from 1, nil where there is none.
func rank(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
