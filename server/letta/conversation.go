package letta

import (
	"cmp"
	"encoding/json"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// Conversation is a thread of an agent's messages, in Letta's shape.
type Conversation struct {
	recall.Conversation
	IdentityID       *string   `json:"identity_id" doc:"Whom it is with; null if nobody said."`
	InContext        []string  `json:"in_context_message_ids" doc:"The system prompt and the newest 1,000 others."`
	Archived         bool      `json:"archived"`
	IsolatedBlockIDs []string  `json:"isolated_block_ids"`
	CreatedByID      rest.Null `json:"created_by_id"`
	LastUpdatedByID  rest.Null `json:"last_updated_by_id"`
}

// ConversationFields are the fields that a caller may set when it creates or changes a conversation. Null leaves a
// field unchanged.
type ConversationFields struct {
	Summary       rest.Opt[string]        `json:"summary,omitzero"`
	Description   rest.Opt[string]        `json:"description,omitzero"`
	Model         rest.Opt[string]        `json:"model,omitzero"`
	ModelSettings rest.Opt[ModelSettings] `json:"model_settings,omitzero" doc:"Over those of the agent."`
	WindowLimit   rest.Opt[int]           `json:"context_window_limit,omitzero" doc:"In tokens."`
	IdentityID    rest.Opt[string]        `json:"identity_id,omitzero" doc:"Whom it is with; null: nobody."`

	Compaction rest.Opt[CompactionSettings] `json:"compaction_settings,omitzero" doc:"Over the agent's; null resets them."`
}

// CreateConversation is a request to create a conversation.
type CreateConversation struct {
	ConversationFields
	UserID   rest.Opt[string]   `json:"user_id,omitzero" doc:"Whom it is with: an identity, made if new."`
	Hidden   rest.Opt[bool]     `json:"hidden,omitzero" doc:"Left out of lists."`
	Isolated rest.Opt[[]string] `json:"isolated_block_labels,omitzero" deprecated:"true" doc:"Must be empty."`
}

// New returns the conversation to create. ErrInvalid if a field asks for something that Loci does not serve.
func (c CreateConversation) New() (recall.NewConversation, error) {
	if len(c.Isolated.Value) > 0 {
		return recall.NewConversation{}, refuse("isolated_block_labels",
			"all conversations of an agent share its blocks; leave the list empty, or create another agent")
	}
	err := cmp.Or(checkThinking(json.RawMessage(c.ModelSettings.Value.Object)), c.Compaction.Value.Check(),
		checkHandle("model", c.Model.Value))
	if err != nil {
		return recall.NewConversation{}, err
	}
	return recall.NewConversation{Summary: c.Summary.Pointer(), Description: c.Description.Pointer(),
		Model: notEmpty(c.Model), ModelSettings: json.RawMessage(c.ModelSettings.Value.Object),
		WindowLimit: limitOf(c.WindowLimit).Value, Hidden: c.Hidden.Value}, nil
}

// Settings returns the change of the compaction settings. JSON's null removes all settings, and nil changes none.
func (f ConversationFields) Settings() json.RawMessage {
	if f.Compaction.Null {
		return json.RawMessage(`null`)
	}
	return json.RawMessage(f.Compaction.Value.Object)
}

// Identity returns the id of the identity to set: empty to remove it, nil to keep it.
func (f ConversationFields) Identity() *string {
	if !f.IdentityID.Set {
		return nil
	}
	return &f.IdentityID.Value
}

// Update returns the change of the fields that creations and updates share. A 422 if the settings contradict each
// other.
func (f ConversationFields) Update() (recall.ConversationUpdate, error) {
	return recall.ConversationUpdate{Summary: f.Summary.Pointer(), Description: f.Description.Pointer(),
			Model: notEmpty(f.Model), ModelSettings: json.RawMessage(f.ModelSettings.Value.Object),
			WindowLimit: limitOf(f.WindowLimit).Value},
		cmp.Or(checkThinking(json.RawMessage(f.ModelSettings.Value.Object)), f.Compaction.Value.Check(),
			checkHandle("model", f.Model.Value))
}

// ConversationFilter narrows a list of conversations.
type ConversationFilter struct {
	Summary string `query:"summary_search" doc:"Part of the summary, in any case."`
	Archive string `query:"archive_status" enum:"unarchived,archived,all" doc:"Unarchived if absent."`
	OrderBy string `query:"order_by" enum:"created_at,last_run_completion,last_message_at"`
}

// Filter returns the store's filter.
func (f ConversationFilter) Filter() recall.ConversationFilter {
	out := recall.ConversationFilter{Users: db.AllUsers(), Contains: f.Summary}
	switch f.OrderBy {
	case "last_message_at":
		out.Order = recall.OrderByMessage
	case "last_run_completion":
		out.Order = recall.OrderByRun
	}
	if f.Archive != "all" {
		archived := f.Archive == "archived"
		out.Archived = &archived
	}
	return out
}
