package letta

import (
	"time"

	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// MessageQuery holds the filters and the mode of a search in messages.
type MessageQuery struct {
	Mode         rest.Opt[string]   `json:"search_mode,omitzero" enum:"vector,fts,hybrid" doc:"hybrid if absent"`
	AgentID      rest.Opt[string]   `json:"agent_id,omitzero"`
	UserID       rest.Opt[string]   `json:"user_id,omitzero" doc:"With this user, and with nobody: an identity."`
	Roles        rest.Opt[[]string] `json:"roles,omitzero" enum:"assistant,user,tool,function,system,approval,summary"`
	Conversation rest.Opt[string]   `json:"conversation_id,omitzero" doc:"Of one conversation, or 'default' of the agent."`
	Limit        rest.Opt[int]      `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"50 if absent."`
	Offset       rest.Opt[int]      `json:"offset,omitzero" minimum:"0" maximum:"10000" doc:"Results to leave out."`
	After        rest.Opt[string]   `json:"after,omitzero" doc:"The id of a message: the results behind it."`
	Start        rest.Opt[string]   `json:"start_date,omitzero" doc:"ISO 8601; in the agent's timezone; UTC for all."`
	End          rest.Opt[string]   `json:"end_date,omitzero" doc:"To the end of the day, minute or second."`
	WithReset    rest.Opt[bool]     `json:"include_reset,omitzero" doc:"Those that reset-messages hid, too."`

	Filter  rest.Filter      `json:"filter,omitzero" doc:"Only messages that fit."`
	OrderBy rest.Opt[string] `json:"order_by,omitzero" enum:"relevance,time" doc:"time: the newest of the results first."`
}

// ByTime reports whether the results are ordered by time.
func (q MessageQuery) ByTime() bool { return q.OrderBy.Value == byTime }

// DefaultFound is the default limit of a search.
const DefaultFound = 50

// FoundMessage is a text or a reasoning of a message that a search found.
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
	Context        bool      `json:"context" doc:"It shares nothing with the query, and is near messages that do."`

	SearchedFor string               `json:"searched_for,omitempty"`
	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// FoundIn returns the texts and reasonings of a message that a search found.
func FoundIn(h recall.Hit) (found []FoundMessage) {
	for _, item := range (SpeechTool{}).Options(nil).Items(h.Message) {
		f := FoundMessage{MessageID: h.ID, CreatedAt: h.CreatedAt, AgentID: h.AgentID, ConversationID: h.ConversationID,
			Score: h.Score, Position: h.Position, Seq: h.Seq, Context: h.Context, Explanation: h.Explanation}
		switch item := item.value.(type) {
		case UserMessage:
			f.MessageType, f.Content = item.MessageType, new(item.Content.Texts())
		case AssistantMessage:
			f.MessageType, f.Content = item.MessageType, new(item.Content.Texts())
		case ReasoningMessage:
			f.MessageType, f.Reasoning = item.MessageType, &item.Reasoning
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// ExplainSearch adds the explanation of the whole search to the first result only, if results have explanations.
func ExplainSearch(page []FoundMessage, search *rank.Explanation) {
	for i := range page {
		if page[i].Explanation == nil {
			continue
		}
		explanation := *page[i].Explanation // the results from one message share it
		if explanation.Search = nil; i == 0 {
			explanation.Search = search
		}
		page[i].Explanation = &explanation
	}
}

// FoundInternal is a message that a search found, in the shape of InternalMessage.
type FoundInternal struct {
	Text        string          `json:"embedded_text" doc:"What the search found it by."`
	Message     InternalMessage `json:"message"`
	Score       float64         `json:"rrf_score"`
	WordsRank   *int            `json:"fts_rank" doc:"From 1; null if it shares no word with the query."`
	MeaningRank *int            `json:"vector_rank" doc:"From 1; null if it was not ranked by meaning."`
	Snippet     string          `json:"snippet"`
	Context     bool            `json:"context" doc:"It shares nothing with the query, and is near messages that do."`

	SearchedFor string               `json:"searched_for,omitempty"`
	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// FoundInternalOf returns a message that a search found, in Letta's shape.
func FoundInternalOf(h recall.Hit) FoundInternal {
	return FoundInternal{Text: recall.Searched(h.Message), Message: InternalMessageOf(h.Message), Score: h.Score,
		WordsRank: given(h.WordsRank), MeaningRank: given(h.MeaningRank), Snippet: h.Snippet,
		Context: h.Context, Explanation: h.Explanation}
}
