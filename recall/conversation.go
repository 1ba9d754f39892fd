package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// DefaultConversation names an agent's default conversation in place of an id.
const DefaultConversation = "default"

// Conversation is a thread of an agent's messages.
type Conversation struct {
	Key           int64           `db:"key" json:"-"`
	ID            string          `db:"id" json:"id"`
	AgentID       string          `db:"agent_id" json:"agent_id"`
	AgentKey      int64           `db:"agent_key" json:"-"`
	IsDefault     bool            `db:"is_default" json:"-"`
	Summary       *string         `db:"summary" json:"summary"`
	Description   *string         `db:"description" json:"description"`
	Model         *string         `db:"model" json:"model"`
	ModelSettings json.RawMessage `db:"model_settings" json:"model_settings"`
	WindowLimit   *int            `db:"context_window_limit" json:"context_window_limit"` // in tokens
	// Compaction changes the agent's compaction settings; nil changes none.
	Compaction    json.RawMessage `db:"compaction_settings" json:"compaction_settings,omitempty"`
	Hidden        bool            `db:"hidden" json:"hidden"`
	Delegated     bool            `db:"delegated" json:"-"`  // the fork in which a sub-agent works
	OnlyTools     []string        `db:"only_tools" json:"-"` // that may be called in it; nil is all
	ContextView   `json:"-"`
	Usage         `json:"-"`
	Messages      int          `db:"messages" json:"message_count"` // the position of the last
	Tokens        int64        `db:"tokens" json:"-"`               // of all messages
	Prompts       []int        `db:"prompts" json:"-"`              // positions of the system prompts; the last is current
	Refusal       *LastRefusal `db:"refusal" json:"-"`              // the last of its prompts; nil: none was refused
	LastMessageAt *time.Time   `db:"last_message_at" json:"last_message_at"`
	LastRunAt     *time.Time   `db:"last_run_completion" json:"-"` // when the newest of its runs that have ended did
	ArchivedAt    *time.Time   `db:"archived_at" json:"archived_at"`
	HeldUntil     *time.Time   `db:"held_until" json:"held_until"` // compactions that can wait do so until then
	CreatedAt     time.Time    `db:"created_at" json:"created_at"`
	UpdatedAt     time.Time    `db:"updated_at" json:"updated_at"`

	Vectors *embed.Status `db:"embedding_status" json:"embedding_status"` // nil without an embeddings endpoint
}

// conversationColumns are the columns of Conversation, from conversations c and their agents a.
const conversationColumns = `c.key, c.id, a.id AS agent_id, c.agent_key, c.is_default, c.summary, c.description,
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

// Begin creates the default conversation of a new agent, in the transaction that creates the agent. instructions are
// its first message.
func (s *Store) Begin(ctx context.Context, org db.Org, agentID, instructions string) error {
	_, err := s.db.Exec(ctx, `
		WITH log AS (
			INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents WHERE org = $1 AND id = $2
			ON CONFLICT DO NOTHING
		)
		INSERT INTO conversations (org, agent_key, is_default)
		SELECT org, key, true FROM agents WHERE org = $1 AND id = $2`, org, agentID)
	if err != nil {
		return db.Error(err)
	}
	_, err = s.Append(ctx, org, agentID, DefaultConversation, []Draft{instruct(instructions)})
	return err
}

func instruct(instructions string) Draft {
	return Draft{Role: System, Content: []Part{{Type: Text, Text: instructions}}}
}

// NewConversation describes a conversation to be created.
type NewConversation struct {
	ID            string // conv- and a UUID; empty to choose one
	Summary       *string
	Description   *string
	Model         *string
	ModelSettings json.RawMessage
	WindowLimit   *int            // in tokens
	Compaction    json.RawMessage // an object of settings over the agent's, which the caller has checked
	Hidden        bool
	Instructions  string // the first message
}

// NewConversationID returns an id for a conversation to be created.
func NewConversationID() string { return "conv-" + uuid.NewString() }

// CreateConversation adds a conversation to an agent. It returns ErrNotFound if the agent does not exist.
func (s *Store) CreateConversation(ctx context.Context, org db.Org, agentID string,
	n NewConversation) (Conversation, error) {
	if err := checkConversation(n.WindowLimit, n.Summary, n.Description); err != nil {
		return Conversation{}, err
	}
	var made Conversation
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		in := s.With(tx)
		agent, err := db.AgentKey(ctx, tx, org, agentID)
		if err != nil {
			return err
		}
		id, err := db.One[string](ctx, tx, `
			INSERT INTO conversations (id, org, agent_key, summary, description, model, model_settings,
			                           context_window_limit, compaction_settings, hidden)
			SELECT @id, @org, @agent, @summary, @description, @model, (`+mergedSettings+`), @window, @compaction,
			       @hidden
			FROM (SELECT NULL::jsonb AS model_settings) AS none
			RETURNING id`,
			pgx.StrictNamedArgs{"id": cmp.Or(n.ID, NewConversationID()), "org": org, "agent": agent,
				"summary": n.Summary, "description": n.Description, "model": n.Model, "settings": n.ModelSettings,
				"window": n.WindowLimit, "compaction": n.Compaction, "hidden": n.Hidden})
		if err != nil {
			return err
		}
		if _, err := in.Append(ctx, org, agentID, id, []Draft{instruct(n.Instructions)}); err != nil {
			return err
		}
		made, err = in.Conversation(ctx, org, agentID, id)
		return err
	})
	return made, err
}

// mergedSettings is the model settings with those of a change over them. A null field is not set any more.
const mergedSettings = `SELECT jsonb_object_agg(key, value)
	FROM jsonb_each(coalesce(model_settings, '{}') || coalesce(@settings::jsonb, '{}')) WHERE value <> 'null'`

// maxNoteBytes bounds a conversation's summary and description.
const maxNoteBytes = 100_000

func checkConversation(window *int, notes ...*string) error {
	if window != nil && (*window < 1 || *window > 100_000_000) {
		return db.Invalid("context_window_limit must be between 1 and 100000000. Got: %d", *window)
	}
	for _, note := range notes {
		if note != nil && len(*note) > maxNoteBytes {
			return db.Invalid("a summary or description has %d bytes; it may have at most %d", len(*note), maxNoteBytes)
		}
	}
	return nil
}

// Conversation returns a conversation by its id, or the default one of an agent if the id is empty or
// DefaultConversation. A conversation by its id must be of the agent unless agentID is empty.
func (s *Store) Conversation(ctx context.Context, org db.Org, agentID, id string) (Conversation, error) {
	condition, args := named(org, agentID, id)
	c, err := db.One[Conversation](ctx, s.db, conversationRows+` AND `+condition, args)
	return c, s.conversationError(ctx, org, err, agentID, id)
}

// named returns the condition that a conversation is the one that a caller named, and the arguments of a statement with
// it. Each of its forms is one that Postgres plans once: of a condition that tells the cases apart itself it would make
// a plan for each call, which takes several times as long as its execution.
func named(org db.Org, agentID, id string) (condition string, args pgx.StrictNamedArgs) {
	args = pgx.StrictNamedArgs{"org": org}
	if id == "" || id == DefaultConversation {
		args["agent"] = agentID
		return `c.is_default AND a.id = @agent`, args
	}
	args["conversation"] = id
	if agentID == "" {
		return `c.id = @conversation`, args
	}
	args["agent"] = agentID
	return `c.id = @conversation AND a.id = @agent`, args
}

// ListState returns a text that is another once an agent has a conversation more or less. Nobody can read anything else
// from it.
func (s *Store) ListState(ctx context.Context, org db.Org, agentID string) (string, error) {
	return db.One[string](ctx, s.db, `
		SELECT concat_ws(' ', count(*), max(c.key))`+fromConversations+` AND a.id = @agent`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID})
}

// inConversation is the condition that a conversation c is the one that @within names: an id or DefaultConversation;
// empty is any.
const inConversation = `CASE WHEN @within = '' THEN true WHEN @within = 'default' THEN c.is_default
	ELSE c.id = @within END`

// ErrReset is the error of a request that found a conversation before it was reset, and did not find it after.
var ErrReset error = resetError{}

// resetError means that a conversation was reset a moment ago. It is not found, for the work that was done in it, and a
// request may be sent again.
type resetError struct{}

// Error implements error.
func (resetError) Error() string {
	return "The messages of the agent were reset while this request was worked on; send it again"
}

// Is implements the interface of package errors.
func (resetError) Is(kind error) bool { return kind == db.ErrNotFound || kind == db.ErrBusy }

// conversationError returns what to say of a conversation that was not found, and any other error unchanged. An agent's
// default conversation may have been found before, and then been reset: the agent has another one. No request takes
// longer than a minute.
func (s *Store) conversationError(ctx context.Context, org db.Org, err error, agentID, id string) error {
	switch {
	case !isNotFound(err):
		return err
	case id == "" || id == DefaultConversation:
		return db.NotFound("Agent with ID %s not found", agentID)
	}
	// Without an answer it is not found.
	reset, _ := db.One[bool](ctx, s.db, `
		SELECT EXISTS (
			SELECT FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND c.id = $2 AND c.reset_at > now() - interval '1 minute')`, org, id)
	if reset {
		return ErrReset
	}
	return db.NotFound("Conversation with ID %s not found", id)
}

// ConversationFilter selects conversations; an empty field selects all.
type ConversationFilter struct {
	AgentID  string
	Contains string // a part of the summary, in any case
	Archived *bool
	Hidden   bool   // include hidden ones
	Order    string // one of OrderByMessage and OrderByRun; empty is by creation
}

// The orders of a list of conversations, as db.Page.Order has them. Conversations without a message or a run come as if
// they had had one before all others.
const (
	OrderByMessage = "coalesce(last_message_at,'-infinity'), key"
	OrderByRun     = "coalesce(last_run_completion,'-infinity'), key"
)

// Conversations lists the conversations of an agent or of the organization, without the default ones.
func (s *Store) Conversations(ctx context.Context, org db.Org, f ConversationFilter,
	p db.Page) ([]Conversation, error) {
	p.Order = f.Order
	return db.List[Conversation](ctx, s.db, p, conversationRows+`
		AND NOT c.is_default AND @agent IN ('', a.id) AND (@hidden OR NOT c.hidden)
		AND (@contains = '' OR strpos(lower(c.summary), lower(@contains)) > 0)
		AND (@archived::boolean IS NULL OR (c.archived_at IS NOT NULL) = @archived)`,
		pgx.StrictNamedArgs{"org": org, "agent": f.AgentID, "contains": f.Contains, "archived": f.Archived,
			"hidden": f.Hidden})
}

// ConversationUpdate changes the fields that are not nil, and the model settings field by field; null unsets one.
type ConversationUpdate struct {
	Summary       *string
	Description   *string
	Model         *string
	ModelSettings json.RawMessage
	WindowLimit   *int
	Compaction    json.RawMessage // the object that replaces the stored one; JSON's null resets it; nil keeps it
	Archived      *bool
	LastMessageAt *time.Time
}

// UpdateConversation changes a conversation.
func (s *Store) UpdateConversation(ctx context.Context, org db.Org, id string,
	u ConversationUpdate) (Conversation, error) {
	if err := checkConversation(u.WindowLimit, u.Summary, u.Description); err != nil {
		return Conversation{}, err
	}
	err := db.Exec(ctx, s.db, `
		UPDATE conversations
		SET summary = coalesce(@summary, summary), description = coalesce(@description, description),
		    model = coalesce(@model, model), model_settings = (`+mergedSettings+`),
		    context_window_limit = coalesce(@window, context_window_limit),
		    compaction_settings = nullif(coalesce(@compaction::jsonb, compaction_settings), 'null'),
		    archived_at = CASE WHEN @archived THEN coalesce(archived_at, now())
		                       WHEN NOT @archived THEN NULL ELSE archived_at END,
		    last_message_at = coalesce(@last, last_message_at), updated_at = now()
		WHERE org = @org AND id = @id AND deleted_at IS NULL`,
		pgx.StrictNamedArgs{"org": org, "id": id, "summary": u.Summary, "description": u.Description, "model": u.Model,
			"settings": u.ModelSettings, "window": u.WindowLimit, "compaction": u.Compaction, "archived": u.Archived,
			"last": u.LastMessageAt})
	if err != nil {
		return Conversation{}, s.conversationError(ctx, org, err, "", id)
	}
	return s.Conversation(ctx, org, "", id)
}

// Hold lets the compactions of a conversation that can wait do so until a time; nil ends that.
func (s *Store) Hold(ctx context.Context, org db.Org, id string, until *time.Time) error {
	err := db.Exec(ctx, s.db, `
		UPDATE conversations SET held_until = $3 WHERE org = $1 AND id = $2 AND deleted_at IS NULL`, org, id, until)
	return s.conversationError(ctx, org, err, "", id)
}

// RunEnded notes that a run in a conversation ended, at the start of the transaction.
func (s *Store) RunEnded(ctx context.Context, org db.Org, conversation string) error {
	return db.Exec(ctx, s.db, `
		UPDATE conversations SET last_run_completion = now() WHERE org = $1 AND id = $2`, org, conversation)
}

// DeleteConversation hides a conversation and its messages from every read; the log keeps them. ErrConflict if it is an
// agent's default conversation.
func (s *Store) DeleteConversation(ctx context.Context, org db.Org, id string) error {
	c, err := s.Conversation(ctx, org, "", id)
	if err != nil {
		return err
	}
	if c.IsDefault {
		return db.Conflict("%s is the default conversation of agent %s and cannot be deleted; reset it instead", id,
			c.AgentID)
	}
	err = db.Exec(ctx, s.db, `
		UPDATE conversations SET deleted_at = now(), updated_at = now()
		WHERE org = $1 AND id = $2 AND deleted_at IS NULL`, org, id)
	return s.conversationError(ctx, org, err, "", id)
}

// Reset hides the default conversation of an agent and begins a new one with the instructions that compile returns.
// compile runs in the transaction, after the conversation is hidden. The log keeps the hidden messages: lists have them
// if MessageFilter.WithReset is set, and no search finds them.
func (s *Store) Reset(ctx context.Context, org db.Org, agentID string, compile func(pgx.Tx) (string, error)) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		err := db.Exec(ctx, tx, `
			UPDATE conversations c SET deleted_at = now(), reset_at = now(), is_default = false, updated_at = now()
			FROM agents a
			WHERE a.key = c.agent_key AND c.org = $1 AND a.org = $1 AND a.id = $2 AND c.is_default`, org, agentID)
		if err != nil {
			return s.conversationError(ctx, org, err, agentID, "")
		}
		instructions, err := compile(tx)
		if err != nil {
			return err
		}
		return s.With(tx).Begin(ctx, org, agentID, instructions)
	})
}

// Forget hides the conversations of an agent and marks its log for Clear, in the transaction that deletes the agent. It
// locks the conversations, so that no message is appended until that transaction ends.
func (s *Store) Forget(ctx context.Context, org db.Org, agentID string) error {
	_, err := s.db.Exec(ctx, `
		WITH locked AS (
			SELECT c.key FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND a.id = $2
			ORDER BY c.key
			FOR NO KEY UPDATE OF c
		)
		UPDATE conversations SET deleted_at = coalesce(deleted_at, now())
		WHERE org = $1 AND key IN (SELECT key FROM locked)`, org, agentID)
	if err == nil {
		_, err = s.db.Exec(ctx, `
			UPDATE agent_logs SET agent_key = NULL
			WHERE org = $1 AND agent_key = (SELECT key FROM agents WHERE org = $1 AND id = $2)`, org, agentID)
	}
	return db.Error(err)
}
