package letta

import (
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// Conversation is a thread of an agent's messages, in Letta's shape.
type Conversation struct {
	recall.Conversation
	InContext        []string  `json:"in_context_message_ids" doc:"The system prompt and the newest 1,000 others."`
	Archived         bool      `json:"archived"`
	IsolatedBlockIDs []string  `json:"isolated_block_ids"`
	CreatedByID      rest.Null `json:"created_by_id"`
	LastUpdatedByID  rest.Null `json:"last_updated_by_id"`
}

// ConversationFields are the fields of a conversation that a caller sets when it creates or changes the conversation.
// Null leaves a field unchanged.
type ConversationFields struct {
	Summary       rest.Opt[string]      `json:"summary,omitzero"`
	Description   rest.Opt[string]      `json:"description,omitzero"`
	Model         rest.Opt[string]      `json:"model,omitzero"`
	ModelSettings rest.Opt[rest.Object] `json:"model_settings,omitzero"`
	WindowLimit   rest.Opt[int]         `json:"context_window_limit,omitzero" doc:"In tokens."`
}

// ConversationFilter narrows a list of conversations.
type ConversationFilter struct {
	AgentID string `query:"agent_id"`
	Summary string `query:"summary_search" doc:"Part of the summary, in any case."`
	Archive string `query:"archive_status" enum:"unarchived,archived,all" doc:"Unarchived if absent."`
	OrderBy string `query:"order_by" enum:"created_at,last_run_completion,last_message_at"`
}

// Filter returns the store's filter.
func (f ConversationFilter) Filter() recall.ConversationFilter {
	out := recall.ConversationFilter{AgentID: f.AgentID, Contains: f.Summary,
		ByUse: f.OrderBy != "" && f.OrderBy != "created_at"}
	if f.Archive != "all" {
		archived := f.Archive == "archived"
		out.Archived = &archived
	}
	return out
}
