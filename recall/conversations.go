package recall

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ConversationFilter selects conversations; an empty field selects all.
type ConversationFilter struct {
	AgentID  string
	Users    db.UserScope
	Contains string // a part of the summary; case is ignored
	Archived *bool
	Hidden   bool   // include hidden conversations
	Order    string // OrderByMessage or OrderByRun; empty: by creation
}

// The orders of a list of conversations, in the form of db.Page.Order. Conversations without a message or a run count
// as the oldest.
const (
	OrderByMessage = "coalesce(last_message_at,'-infinity'), key"
	OrderByRun     = "coalesce(last_run_completion,'-infinity'), key"
)

// Conversations lists the conversations of an agent or of the organization, except the default ones.
func (s *Store) Conversations(ctx context.Context, org db.Org, f ConversationFilter,
	p db.Page) ([]Conversation, error) {
	p.Order = f.Order
	args := pgx.StrictNamedArgs{"org": org, "agent": f.AgentID, "contains": f.Contains, "archived": f.Archived,
		"hidden": f.Hidden}
	return db.List[Conversation](ctx, s.db, p, conversationRows+`
		AND NOT c.is_default AND @agent IN ('', a.id) AND (@hidden OR NOT c.hidden)
		AND (@contains = '' OR strpos(lower(c.summary), lower(@contains)) > 0)
		AND (@archived::boolean IS NULL OR (c.archived_at IS NOT NULL) = @archived)
		AND `+f.Users.Where(UserOf, args), args)
}
