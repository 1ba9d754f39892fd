package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// PortableConversation is a conversation as an agent's file carries it, including what its model sees. Its messages
// follow it in the file.
type PortableConversation struct {
	Key           int64           `db:"key" json:"-"`
	ID            string          `db:"id" json:"id"`
	AgentID       string          `db:"agent_id" json:"agent_id"`
	IsDefault     bool            `db:"is_default" json:"is_default"`
	Summary       *string         `db:"summary" json:"summary"`
	Description   *string         `db:"description" json:"description"`
	Model         *string         `db:"model" json:"model"`
	ModelSettings json.RawMessage `db:"model_settings" json:"model_settings"`
	WindowLimit   *int            `db:"context_window_limit" json:"context_window_limit"`
	Compaction    json.RawMessage `db:"compaction_settings" json:"compaction_settings,omitempty"`
	Hidden        bool            `db:"hidden" json:"hidden"`
	Delegated     bool            `db:"delegated" json:"delegated"`   // a sub-agent works in it
	OnlyTools     []string        `db:"only_tools" json:"only_tools"` // the only tools that may be called in it; null: all
	Depth         int             `db:"depth" json:"depth,omitempty"` // depth of its sub-agent; 0 for other conversations
	Messages      int             `db:"messages" json:"message_count"`
	Prompts       []int           `db:"prompts" json:"prompts"`
	View          `json:"view"`
	Reset         *time.Time `db:"reset_at" json:"reset_at"`       // when a reset hid it; nil if none did
	ForkedFrom    *string    `db:"forked_from" json:"forked_from"` // id of the conversation that it is a copy of
	ForkedTo      int        `db:"forked_to" json:"forked_to"`     // the last position that is a copy
	LastMessageAt *time.Time `db:"last_message_at" json:"last_message_at"`
	LastRunAt     *time.Time `db:"last_run_completion" json:"last_run_completion"`
	ArchivedAt    *time.Time `db:"archived_at" json:"archived_at"`
	CreatedAt     time.Time  `db:"created_at" json:"created_at"`
	UpdatedAt     time.Time  `db:"updated_at" json:"updated_at"`
}

// View is a ContextView and a Usage, as an agent's file carries them.
type View struct {
	Version          int             `db:"frame" json:"version"`
	FirstVisible     int             `db:"first_visible" json:"first_visible"`
	Kept             []int           `db:"kept" json:"kept"`
	SummaryAt        *int            `db:"summary_position" json:"summary_position"`
	Clipped          json.RawMessage `db:"clipped" json:"clipped"`
	HiddenTokens     int64           `db:"hidden_tokens" json:"hidden_tokens"`
	Fixed            int             `db:"fixed_tokens" json:"fixed_tokens"`
	Reported         int             `db:"reported_tokens" json:"reported_tokens"`
	ReportedPosition int             `db:"reported_position" json:"reported_position"`
	Settled          int             `db:"settled_tokens" json:"settled_tokens"`
	Warned           bool            `db:"warned" json:"warned"`
	Refusal          *LastRefusal    `db:"refusal" json:"refusal,omitempty"`
}

// PortableMessage is a message as an agent's file carries it. Its long results are whole.
type PortableMessage struct {
	ConversationID string    `json:"conversation_id"`
	ID             string    `json:"id"`
	Seq            int64     `json:"seq"`
	Position       int       `json:"position"`
	Role           Role      `json:"role"`
	Name           *string   `json:"name,omitempty"`
	Content        []Part    `json:"content"`
	OTID           *string   `json:"otid,omitempty"`
	StepID         *string   `json:"step_id,omitempty"`
	RunID          *string   `json:"run_id,omitempty"`
	SenderID       *string   `json:"sender_id,omitempty"`
	GroupID        *string   `json:"group_id,omitempty"`
	Model          *string   `json:"model,omitempty"`
	IsErr          bool      `json:"is_err,omitempty"`
	Purpose        string    `json:"purpose,omitempty"`
	CreatedAt      time.Time `json:"created_at"`

	Refused    *Refused       `json:"refused,omitempty"`
	Provenance *db.Provenance `json:"provenance,omitempty"`
}

// ExportConversations lists an agent's conversations, the oldest first. Those that a reset hid are included.
func (s *Store) ExportConversations(ctx context.Context, org db.Org, agentID string) ([]PortableConversation, error) {
	return db.All[PortableConversation](ctx, s.db, `
		SELECT c.key, c.id, a.id AS agent_id, c.is_default, c.summary, c.description, c.model, c.model_settings,
		       c.context_window_limit, c.compaction_settings, c.hidden, c.delegated, c.only_tools, c.depth,
		       c.messages, c.prompts, c.frame,
		       c.first_visible, c.kept,
		       c.summary_position, c.clipped, c.hidden_tokens, c.fixed_tokens, c.reported_tokens, c.reported_position,
		       c.settled_tokens, c.warned, c.refusal, c.reset_at, c.last_message_at,
		       c.last_run_completion, c.archived_at, c.created_at, c.updated_at,
		       o.id AS forked_from, c.forked_to
		FROM agents a JOIN conversations c ON c.org = a.org AND c.agent_key = a.key
		LEFT JOIN conversations o ON o.org = c.org AND o.key = c.forked_from
		     AND (o.deleted_at IS NULL OR o.reset_at IS NOT NULL)
		WHERE a.org = $1 AND a.id = $2 AND (c.deleted_at IS NULL OR c.reset_at IS NOT NULL)
		ORDER BY c.key`, org, agentID)
}

// exportPage is the most messages that Export reads at a time. They have at most pageBytes.
const exportPage = 50

// Export yields a conversation's messages from a position on, in order, with their long results whole. If the
// conversation is delegated, messages that it shares with its original keep only the beginnings of long results. An
// error is the last item.
func (s *Store) Export(ctx context.Context, org db.Org, conversation int64, from int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		shared, err := db.One[int](ctx, s.db, `
			SELECT CASE WHEN delegated THEN forked_to ELSE 0 END FROM conversations WHERE org = $1 AND key = $2`,
			org, conversation)
		if err != nil {
			yield(Message{}, err)
			return
		}
		for most := exportPage; ; {
			page, whole, err := db.Within(ctx, s.db, db.Budget[Message]{Bytes: pageBytes}, `
				SELECT `+messageColumns+` FROM `+tablesOf(true)+`
				WHERE m.org = $1 AND m.conversation_key = $2 AND m.position >= $3
				ORDER BY m.position
				LIMIT $4`, org, conversation, from, most)
			limit := most
			most = nextPage(most, len(page), exportPage, whole)
			unshared := page
			for len(unshared) > 0 && unshared[0].Position <= shared {
				unshared = unshared[1:]
			}
			if err == nil {
				unshared, err = s.whole(ctx, org, unshared)
			}
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range append(page[:len(page)-len(unshared):len(page)-len(unshared)], unshared...) {
				if !yield(m, nil) {
					return
				}
				from = m.Position + 1
			}
			if whole && len(page) < limit {
				return
			}
		}
	}
}

// PortableOf returns a message as an agent's file carries it.
func PortableOf(conversation string, m Message) PortableMessage {
	return PortableMessage{conversation, m.ID, m.Seq, m.Position, m.Role, m.Name, m.Content, m.OTID, m.StepID, m.RunID,
		m.SenderID, m.GroupID, m.Model, m.IsErr, m.Purpose, m.CreatedAt, m.Refused, m.Provenance}
}

// RestoreConversation creates a conversation of a restored agent under its old id, without messages; FinishConversation
// then gives it its view. ErrInvalid if the agent does not yet have the conversation that this one is a copy of, or if
// that has fewer messages than were copied.
func (s *Store) RestoreConversation(ctx context.Context, org db.Org, c PortableConversation) error {
	if err := checkConversation(c.WindowLimit, c.Summary, c.Description); err != nil {
		return err
	}
	if err := s.checkOrigin(ctx, org, c); err != nil {
		return err
	}
	return db.Exec(ctx, s.db, `
		WITH log AS (
			INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents WHERE org = @org AND id = @agent
			ON CONFLICT DO NOTHING
		)
		INSERT INTO conversations (id, org, agent_key, is_default, summary, description, model, model_settings,
		                           context_window_limit, compaction_settings, hidden, delegated, only_tools, forked_from,
		                           forked_to, created_at, depth)
		SELECT @id, org, key, @default, @summary, @description, @model, @settings, @window, @compaction, @hidden,
		       @delegated, @tools,
		       (SELECT o.key FROM conversations o WHERE o.org = @org AND o.id = @from), @to, @created, @depth
		FROM agents WHERE org = @org AND id = @agent`,
		pgx.StrictNamedArgs{"id": c.ID, "org": org, "agent": c.AgentID, "default": c.IsDefault, "summary": c.Summary,
			"description": c.Description, "model": c.Model, "settings": c.ModelSettings, "window": c.WindowLimit,
			"compaction": c.Compaction, "hidden": c.Hidden, "delegated": c.Delegated, "tools": c.OnlyTools, "from": c.ForkedFrom,
			"to": c.ForkedTo, "created": c.CreatedAt, "depth": c.Depth})
}

// checkOrigin returns ErrInvalid unless ForkedFrom and ForkedTo name a conversation and a position that exist.
func (s *Store) checkOrigin(ctx context.Context, org db.Org, c PortableConversation) error {
	most := c.Messages
	if c.ForkedFrom != nil {
		originMessages, err := db.One[int](ctx, s.db, `
			SELECT c.messages FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
			WHERE c.org = $1 AND a.org = $1 AND c.id = $2 AND a.id = $3`, org, *c.ForkedFrom, c.AgentID)
		if errors.Is(err, db.ErrNotFound) {
			return db.Invalid("forked_from: the agent has no conversation %q before this one", db.Short(*c.ForkedFrom))
		}
		if err != nil {
			return err
		}
		most = min(most, originMessages)
	}
	if c.ForkedTo < 0 || c.ForkedTo > most {
		return db.Invalid("forked_to is %d; it must be from 0 to %d, the messages that both conversations have", c.ForkedTo,
			most)
	}
	return nil
}

// RestoreMessages appends a restored conversation's messages, all of them in order, under their old ids and with the
// seqs of events that the agent already has. It redacts and cleans them like Append. ErrInvalid if the event with a seq
// belongs to another message.
func (s *Store) RestoreMessages(ctx context.Context, org db.Org, c PortableConversation,
	messages iter.Seq2[PortableMessage, error]) error {
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return err
	}
	a := appending{Store: s, org: org, agentID: c.AgentID, conversation: c.ID, redactor: redactor, now: time.Now(),
		otids: map[string]bool{}, restores: true}
	n := 0
	for m, err := range messages {
		if err != nil {
			return err
		}
		if m.Position != n+1 {
			return db.Invalid("the position of message %s is %d; it must be %d, as the messages of a conversation are "+
				"numbered without a gap", m.ID, m.Position, n+1)
		}
		d := m.draft()
		if c.Delegated && m.Position <= c.ForkedTo {
			d.SharedClips = sharedClips(m.Content)
		}
		e, err := newEntry(d, redactor, surroundings{now: a.now, clips: m.clips()})
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		e.at, e.seq = n, m.Seq
		n++
		if err := a.add(ctx, e); err != nil {
			return err
		}
	}
	if n == 0 || n != c.Messages {
		return db.Invalid("conversation %s has %d messages in the file; it says that it has %d, and must have one", c.ID, n,
			c.Messages)
	}
	return a.appendChunk(ctx)
}

// clips returns the Clips of a message's long results, by the index of their part.
func (m PortableMessage) clips() map[int]*Clip {
	clips := map[int]*Clip{}
	for i, p := range m.Content {
		if p.Clip != nil && strings.HasPrefix(p.Clip.ID, "clip-") && db.UUID("clip-", p.Clip.ID) != uuid.Nil {
			clips[i] = p.Clip
		}
	}
	return clips
}

func (m PortableMessage) draft() Draft {
	return Draft{ID: m.ID, Role: m.Role, Name: m.Name, Content: m.Content, OTID: m.OTID, StepID: m.StepID, RunID: m.RunID,
		SenderID: m.SenderID, GroupID: m.GroupID, Model: m.Model, IsErr: m.IsErr,
		Purpose: m.Purpose, CreatedAt: &m.CreatedAt, Refused: m.Refused, Provenance: m.Provenance}
}

// FinishConversation sets the view of a restored conversation that has its messages. ErrInvalid if the view does not
// fit the messages.
func (s *Store) FinishConversation(ctx context.Context, org db.Org, c PortableConversation) error {
	if err := s.checkView(ctx, org, c); err != nil {
		return err
	}
	return db.Exec(ctx, s.db, `
		UPDATE conversations
		SET prompts = @prompts, frame = @version, first_visible = @first, kept = @kept, summary_position = @summary,
		    clipped = @clipped, hidden_tokens = @hidden, fixed_tokens = @fixed, reported_tokens = @reported,
		    reported_position = @reported_position, settled_tokens = @settled, warned = @warned, refusal = @refusal,
		    reset_at = @reset,
		    deleted_at = @reset, last_message_at = @last,
		    last_run_completion = @run, archived_at = @archived, updated_at = @updated
		WHERE org = @org AND id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": c.ID, "prompts": c.Prompts, "version": c.Version, "first": c.FirstVisible,
			"kept": append([]int{}, c.Kept...), "summary": c.SummaryAt, "clipped": c.Clipped, "hidden": c.HiddenTokens,
			"fixed": c.Fixed, "reported": c.Reported, "reported_position": c.ReportedPosition, "settled": c.Settled,
			"warned": c.Warned, "refusal": c.Refusal, "reset": c.Reset, "last": c.LastMessageAt, "run": c.LastRunAt,
			"archived": c.ArchivedAt, "updated": c.UpdatedAt})
}

// RestoreView sets the view of a restored conversation. The view has the messages from position first on, the messages
// at the positions kept, and, if it is not nil, the summary at a position in place of the others. prompts are the
// positions of the system prompts; the last one is current. ErrInvalid if a position has no message of the right role.
func (s *Store) RestoreView(ctx context.Context, org db.Org, id string, v View, prompts []int) error {
	c, err := db.One[PortableConversation](ctx, s.db, `
		SELECT c.key, c.id, a.id AS agent_id, c.is_default, c.summary, c.description, c.model, c.model_settings,
		       c.context_window_limit, c.compaction_settings, c.hidden, c.delegated, c.only_tools, c.depth,
		       c.messages, c.prompts, c.frame,
		       c.first_visible, c.kept, c.summary_position, c.clipped,
		       (SELECT coalesce(sum(m.tokens), 0)::bigint FROM messages m
		        WHERE m.org = $1 AND m.conversation_key = c.key AND m.position < $3 AND m.position <> ALL ($4)
		          AND m.position IS DISTINCT FROM $5) AS hidden_tokens,
		       c.fixed_tokens, c.reported_tokens, c.reported_position, c.settled_tokens, c.warned, c.refusal, c.reset_at,
		       c.last_message_at, c.last_run_completion, c.archived_at, c.created_at, c.updated_at,
		       NULL::text AS forked_from, c.forked_to
		FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
		WHERE c.org = $1 AND c.id = $2`, org, id, v.FirstVisible, append([]int{}, v.Kept...), v.SummaryAt)
	if err != nil {
		return err
	}
	c.FirstVisible, c.Kept, c.SummaryAt, c.Prompts = v.FirstVisible, v.Kept, v.SummaryAt, prompts
	return s.FinishConversation(ctx, org, c)
}

// checkView returns ErrInvalid unless each position in a view belongs to a message of the right role.
func (s *Store) checkView(ctx context.Context, org db.Org, c PortableConversation) error {
	invalid := func(field string, value any, rule string) error {
		return db.Invalid("conversation %s: %s is %v; %s", c.ID, field, value, rule)
	}
	if len(c.Prompts) == 0 || !slices.IsSorted(c.Prompts) {
		return invalid("prompts", c.Prompts, "it must be the positions of the system prompts, in their order")
	}
	if c.FirstVisible < 1 || c.FirstVisible > c.Messages+1 || !slices.IsSorted(c.Kept) {
		return invalid("view.first_visible", c.FirstVisible, "it must be a position, and kept must be in order")
	}
	for _, position := range c.Kept {
		if position < 1 || position >= c.FirstVisible {
			return invalid("view.kept", c.Kept, "each must be a position before first_visible")
		}
	}
	if least := min(c.Version, c.Fixed, c.Settled, c.Reported, c.ReportedPosition, int(c.HiddenTokens)); least < 0 ||
		c.ReportedPosition > c.Messages {
		return invalid("view", cmp.Or(min(least, 0), c.ReportedPosition), "its numbers must not be negative or beyond the "+
			"messages")
	}
	fits, err := db.One[bool](ctx, s.db, `
		SELECT NOT EXISTS (
			SELECT FROM unnest(@prompts::int[]) AS p (position)
			LEFT JOIN messages m ON m.org = @org AND m.conversation_key = c.key AND m.position = p.position
			WHERE m.role IS DISTINCT FROM 'system'
		) AND (@summary::int IS NULL OR EXISTS (
			SELECT FROM messages m
			WHERE m.org = @org AND m.conversation_key = c.key AND m.position = @summary AND m.role = 'summary'
		)) AND @hidden <= c.tokens
		FROM conversations c WHERE c.org = @org AND c.id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": c.ID, "prompts": c.Prompts, "summary": c.SummaryAt, "hidden": c.HiddenTokens})
	if err == nil && !fits {
		err = invalid("prompts", c.Prompts, "they must be positions of system messages, view.summary_position that of a "+
			"summary, and view.hidden_tokens at most the tokens of all messages")
	}
	return err
}
