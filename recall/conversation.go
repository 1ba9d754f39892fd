package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// DefaultConversation stands for an agent's default conversation where an id is expected.
const DefaultConversation = "default"

// Conversation is a thread of an agent's messages.
type Conversation struct {
	Key           int64           `db:"key" json:"-"`
	ID            string          `db:"id" json:"id"`
	AgentID       string          `db:"agent_id" json:"agent_id"`
	AgentKey      int64           `db:"agent_key" json:"-"`
	IsDefault     bool            `db:"is_default" json:"-"`
	UserKey       int64           `db:"user_key" json:"-"` // key of the identity with whom it is; 0: nobody
	Summary       *string         `db:"summary" json:"summary"`
	Description   *string         `db:"description" json:"description"`
	Model         *string         `db:"model" json:"model"`
	ModelSettings json.RawMessage `db:"model_settings" json:"model_settings"`
	WindowLimit   *int            `db:"context_window_limit" json:"context_window_limit"` // in tokens
	// Compaction overrides the agent's compaction settings; nil overrides none.
	Compaction    json.RawMessage `db:"compaction_settings" json:"compaction_settings,omitempty"`
	Hidden        bool            `db:"hidden" json:"hidden"`
	Delegated     bool            `db:"delegated" json:"-"`  // it is the fork in which a sub-agent works
	OnlyTools     []string        `db:"only_tools" json:"-"` // the only tools that may be called in it; nil: all
	ContextView   `json:"-"`
	Usage         `json:"-"`
	Messages      int          `db:"messages" json:"message_count"` // also the position of the last message
	Tokens        int64        `db:"tokens" json:"-"`               // tokens of all messages
	Prompts       []int        `db:"prompts" json:"-"`              // positions of the system prompts; the last is current
	Refusal       *LastRefusal `db:"refusal" json:"-"`              // the last refusal of a prompt; nil: none was refused
	LastMessageAt *time.Time   `db:"last_message_at" json:"last_message_at"`
	LastRunAt     *time.Time   `db:"last_run_completion" json:"-"` // the latest end of a run
	ArchivedAt    *time.Time   `db:"archived_at" json:"archived_at"`
	HeldUntil     *time.Time   `db:"held_until" json:"held_until"` // until then, compactions that can wait do wait
	CreatedAt     time.Time    `db:"created_at" json:"created_at"`
	UpdatedAt     time.Time    `db:"updated_at" json:"updated_at"`

	Vectors *endpoint.Status `db:"embedding_status" json:"embedding_status"` // nil without an embeddings endpoint
}

// conversationColumns are the columns of Conversation, from conversations c and their agents a.
const conversationColumns = `c.key, c.id, a.id AS agent_id, c.agent_key, c.is_default,
	coalesce(` + UserOf + `, 0) AS user_key,
	c.summary, c.description,
	c.model, c.model_settings, c.context_window_limit, c.compaction_settings, c.hidden, c.delegated, c.only_tools,
	c.messages, c.tokens,
	c.frame, c.first_visible, c.kept,
	c.summary_position, c.clipped, c.hidden_tokens, c.fixed_tokens, c.reported_tokens, c.reported_position,
	c.settled_tokens, c.warned, c.prompts, c.refusal, c.last_message_at, c.last_run_completion, c.archived_at,
	c.held_until,
	c.created_at, c.updated_at,
	CASE WHEN c.embedded_space IS NOT NULL OR c.embed_error IS NOT NULL THEN json_build_object(
		'pending', CASE WHEN c.unembedded THEN c.messages - c.embedded ELSE 0 END,
		'refused', c.embed_refused, 'error', c.embed_error)
	END AS embedding_status`

// fromConversations selects from the conversations c of an organization, without deleted ones, and their agents a.
const fromConversations = ` FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
	WHERE c.org = @org AND c.deleted_at IS NULL`

const conversationRows = `SELECT ` + conversationColumns + fromConversations

// Conversation returns a conversation by its id. If id is empty or DefaultConversation, it returns the agent's default
// one. Unless agentID is empty, the conversation must belong to that agent. If ctx works for a user, it must be with
// that user or with nobody, and the default one is the oldest with that user.
func (s *Store) Conversation(ctx context.Context, org db.Org, agentID, id string) (Conversation, error) {
	return s.ConversationIn(ctx, org, agentID, Reach{Conversation: id, Users: db.ScopeOf(ctx)})
}

// ConversationIn is Conversation for one that must be in a scope of users; in any other it is ErrNotFound.
func (s *Store) ConversationIn(ctx context.Context, org db.Org, agentID string, r Reach) (Conversation, error) {
	condition, args := named(ctx, org, agentID, r.Conversation)
	c, err := db.One[Conversation](ctx, s.db, conversationRows+` AND `+condition+` AND `+r.Users.Where(UserOf, args), args)
	return c, s.conversationError(ctx, org, err, agentID, r.Conversation)
}

// Before returns the conversation of an agent before another one: the one that it continues by a hand-over, else the
// one of the scope in which something was said last. ErrNotFound if the agent has no other with messages.
func (s *Store) Before(ctx context.Context, org db.Org, agentID string, r Reach) (Conversation, error) {
	current, err := s.ConversationIn(ctx, org, agentID, r)
	if err != nil {
		return current, err
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "key": current.Key}
	c, err := db.One[Conversation](ctx, s.db, conversationRows+` AND a.id = @agent AND c.key <> @key AND c.messages > 0
		AND `+r.Users.Where(UserOf, args)+`
		ORDER BY EXISTS (SELECT FROM handovers h
		                 WHERE h.org = @org AND h.taken_by = @key AND h.conversation_key = c.key) DESC,
		         c.last_message_at DESC NULLS LAST, c.key DESC
		LIMIT 1`, args)
	if !isNotFound(err) {
		return c, err
	}
	reset, failure := db.One[bool](ctx, s.db, `
		SELECT EXISTS (
			SELECT FROM handovers h JOIN conversations c ON c.org = h.org AND c.key = h.conversation_key
			WHERE h.org = $1 AND c.org = $1 AND h.taken_by = $2 AND c.reset_at IS NOT NULL)`, org, current.Key)
	if failure == nil && reset {
		return c, db.NotFound("the conversation before this one was reset, so that its messages can no longer be asked; " +
			"what it handed over is in the working memory and the memory files")
	}
	return c, db.OrNotFound(err, "the agent has no conversation before this one")
}

// named returns a condition on the conversation that a caller named, and the arguments of a statement with this
// condition. Each of the three conditions is planned by Postgres only once. One condition for all three cases would be
// planned for each call, which takes several times as long as its execution. If ctx works for a user, the default
// conversation is the oldest with that user.
func named(ctx context.Context, org db.Org, agentID, id string) (condition string, args pgx.StrictNamedArgs) {
	args = pgx.StrictNamedArgs{"org": org}
	if id == "" || id == DefaultConversation {
		args["agent"] = agentID
		if user := db.UserOf(ctx); user != 0 {
			args["of_user"] = user
			return `a.id = @agent AND c.key = (
				SELECT min(x.conversation_key)
				FROM conversation_identities x JOIN conversations o ON o.org = @org AND o.key = x.conversation_key
				WHERE x.org = @org AND x.agent_key = a.key AND x.identity_key = @of_user AND o.deleted_at IS NULL)`, args
		}
		return `c.is_default AND a.id = @agent`, args
	}
	args["conversation"] = id
	if agentID == "" {
		return `c.id = @conversation`, args
	}
	args["agent"] = agentID
	return `c.id = @conversation AND a.id = @agent`, args
}

// ListState returns an opaque text that changes when an agent gets or loses a conversation of some users, or of nobody.
func (s *Store) ListState(ctx context.Context, org db.Org, agentID string, users db.UserScope) (string, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID}
	return db.One[string](ctx, s.db, `
		SELECT concat_ws(' ', count(*), max(c.key))`+fromConversations+` AND a.id = @agent
		  AND `+users.Where(UserOf, args), args)
}

// Reach says which of an agent's conversations a caller reads.
type Reach struct {
	Conversation string       // an id or DefaultConversation; empty: each that is in the scope
	Users        db.UserScope // whose conversations
}

// where returns a condition on conversation c, and adds its arguments to args.
func (r Reach) where(args pgx.StrictNamedArgs) string {
	args["within"] = r.Conversation
	return `CASE WHEN @within = '' THEN true WHEN @within = 'default' THEN c.is_default
		ELSE c.id = @within END AND ` + r.Users.Where(UserOf, args)
}

// UserOf is SQL for the key of the user with whom conversation c is; NULL: it is with nobody.
const UserOf = `(SELECT x.identity_key FROM conversation_identities x
	WHERE x.org = @org AND x.agent_key = c.agent_key AND x.conversation_key = c.key)`

// ErrReset means that the conversation was reset while a request worked on it.
var ErrReset error = resetError{}

// resetError is both ErrNotFound and ErrBusy: the conversation was reset a moment ago, so the work done in it is lost,
// and the request may be sent again.
type resetError struct{}

func (resetError) Error() string {
	return "The messages of the agent were reset while this request was worked on; send it again"
}

func (resetError) Is(kind error) bool { return kind == db.ErrNotFound || kind == db.ErrBusy }

// conversationError turns ErrNotFound into a text about the conversation, and returns any other error unchanged. It
// returns ErrReset if the conversation was reset within the last minute: no request takes longer, so the request may
// have found the conversation before the reset.
func (s *Store) conversationError(ctx context.Context, org db.Org, err error, agentID, id string) error {
	switch {
	case !isNotFound(err):
		return err
	case id == "" || id == DefaultConversation:
		return db.NotFound("Agent with ID %s not found", agentID)
	}
	// If this query fails, the conversation counts as not found.
	reset, _ := db.One[bool](ctx, s.db, `
		SELECT EXISTS (
			SELECT FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND c.id = $2 AND c.reset_at > now() - interval '1 minute')`, org, id)
	if reset {
		return ErrReset
	}
	return db.NotFound("Conversation with ID %s not found", db.Short(id))
}

// Estimate returns the tokens in the window, as they were counted when the messages were appended. It may be wrong;
// callers use it to decide whether a precise count is worth the work.
func (c Conversation) Estimate() int { return int(c.Tokens-c.HiddenTokens) + c.Fixed }
