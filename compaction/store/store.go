// Package store keeps compactions in Postgres. It claims a conversation, loads its view, commits a change of the view,
// and reverts one. It asks no model.
//
// Each file uses those that are named before it: store.go claim.go viewbefore.go loadview.go commit.go prune.go
// restore.go portable.go rewrite.go
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Store keeps compactions in Postgres.
type Store struct {
	DB     db.DB
	Recall *recall.Store
}

// With returns the store for use in transaction tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx)}
}

// Triggers of compactions.
const (
	Manual       = "manual"
	Threshold    = "post_step_context_check" // Letta's name for usage above the trigger
	Idle         = "idle"                    // no prompt was asked for, as long as the policy's step idle says
	BeforePrompt = "context_window_exceeded" // an assembled prompt did not fit
)

// Compaction is a change of what a model sees of a conversation. The messages that it hid, FromSeq to ToSeq, stay in
// the log.
type Compaction struct {
	Key             int64   `db:"key" json:"-"`
	ID              string  `db:"id" json:"id"`
	AgentID         string  `db:"agent_id" json:"agent_id"`
	ConversationID  *string `db:"conversation_id" json:"conversation_id"` // nil: the default conversation
	ConversationKey int64   `db:"conversation_key" json:"-"`
	Version         int     `db:"frame" json:"-"` // version of the view that it made
	Trigger         string  `db:"trigger" json:"trigger"`
	// About the summary: its mode; how it was made, nil if clipping was enough; its model, nil if none wrote it.
	Mode         plan.Mode `db:"mode" json:"mode" enum:"sliding_window,all,self_compact_all,self_compact_sliding_window"` //nolint:lll // a tag is one line
	How          *clip.How `db:"how" json:"how"`
	Model        *string   `db:"model" json:"model"`
	ModelCalls   int       `db:"model_calls" json:"model_calls"`
	PromptTokens int       `db:"prompt_tokens" json:"prompt_tokens"` // of all calls, by the provider's count
	OutputTokens int       `db:"output_tokens" json:"output_tokens"`
	// Why is why the first way of making the summary, or the lines of a pruning, failed; nil if it did not.
	Why            *string          `db:"why" json:"why"`
	FromPosition   *int             `db:"from_position" json:"from_position"`
	ToPosition     *int             `db:"to_position" json:"to_position"`
	FromSeq        *int64           `db:"from_seq" json:"from_seq"`
	ToSeq          *int64           `db:"to_seq" json:"to_seq"`
	SummaryID      *string          `db:"summary_message_id" json:"summary_message_id"`
	Summary        *string          `db:"summary" json:"summary"`
	Window         int              `db:"window_tokens" json:"context_window"`
	TokensBefore   int              `db:"tokens_before" json:"context_tokens_before"`
	TokensAfter    int              `db:"tokens_after" json:"context_tokens_after"`
	MessagesBefore int              `db:"messages_before" json:"messages_count_before"`
	MessagesAfter  int              `db:"messages_after" json:"messages_count_after"`
	Milliseconds   int64            `db:"duration_ms" json:"duration_ms"`
	Focus          *string          `db:"focus" json:"focus,omitempty" doc:"What the caller asked it to keep above all."`
	Before         json.RawMessage  `db:"before" json:"-"` // a viewBefore: the view that was replaced
	Policy         *string          `db:"policy" json:"policy,omitempty" doc:"That planned it; absent if none did."`
	Steps          []plan.StepCount `db:"steps" json:"steps,omitempty" doc:"Of the policy: edits, and tokens saved."`
	Edits          json.RawMessage  `db:"edits" json:"-"` // edits that the policy made
	CreatedAt      time.Time        `db:"created_at" json:"created_at"`
	RevertedAt     *time.Time       `db:"reverted_at" json:"reverted_at"`

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"What began it; null if unknown."`
}

const compactionRows = `
	SELECT k.key, k.id, a.id AS agent_id, CASE WHEN NOT c.is_default THEN c.id END AS conversation_id, k.conversation_key,
	       k.frame, k.trigger, k.mode, k.how, k.model, k.model_calls, k.prompt_tokens, k.output_tokens, k.why,
	       k.from_position, k.to_position, k.from_seq, k.to_seq, 'message-' || m.id AS summary_message_id,
	       m.content -> 0 ->> 'text' AS summary,
	       k.window_tokens, k.tokens_before, k.tokens_after, k.messages_before, k.messages_after, k.duration_ms, k.focus,
	       k.before, k.policy, k.steps, k.edits, k.created_at, k.reverted_at, k.provenance
	FROM compactions k
	JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key AND c.deleted_at IS NULL
	JOIN agents a ON a.org = c.org AND a.key = c.agent_key
	LEFT JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.summary_position
	WHERE k.org = @org`

// Compactions lists the compactions of an agent, or of one of its conversations if conversation is not empty.
func (s *Store) Compactions(ctx context.Context, org db.Org, agentID, conversation string, p db.Page) ([]Compaction,
	error) {
	c, err := s.Recall.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return nil, err
	}
	where, key := ` AND c.agent_key = @of`, c.AgentKey
	if conversation != "" {
		where, key = ` AND k.conversation_key = @of`, c.Key
	}
	p.Order = "key"
	return db.List[Compaction](ctx, s.DB, p, compactionRows+where, pgx.StrictNamedArgs{"org": org, "of": key})
}

// Compaction returns a compaction by its id; ErrNotFound if there is none.
func (s *Store) Compaction(ctx context.Context, org db.Org, id string) (Compaction, error) {
	k, err := db.One[Compaction](ctx, s.DB, compactionRows+` AND k.id = @id`, pgx.StrictNamedArgs{"org": org, "id": id})
	if errors.Is(err, db.ErrNotFound) {
		return Compaction{}, db.NotFound("Compaction with ID %s not found", id)
	}
	return k, err
}

// Change is a change of a view that Commit stores.
type Change struct {
	Trigger        string // manual, context_window_exceeded, …
	Policy         string // the policy that planned it; empty if none did
	Mode           plan.Mode
	Window         int
	Summary        *clip.Summary // nil if clipping is enough
	FirstVisible   int
	Kept           []int
	Edits          []clip.Edit
	Visible        int // tokens of the messages that stay in view, and of the old summary if it stays
	Before, After  int // tokens of the whole prompt
	MessagesBefore int // including the system prompt
	MessagesAfter  int
	Took           time.Duration
	Focus          string // what the caller asked the summary to keep above all; empty: nothing

	pruned *plan.Pruning // nil for a compaction
	steps  []plan.StepCount
}

// usage returns how full the window is after the change. A policy's edits do not affect the trigger.
func (ch Change) usage(c recall.Conversation) recall.Usage {
	if ch.pruned != nil {
		return recall.Usage{Fixed: c.Fixed, Settled: c.Settled, Warned: c.Warned}
	}
	return recall.Usage{Fixed: c.Fixed, Settled: ch.After}
}

// stats are stored with a summary's message: Letta's stats, and the range that the summary replaces.
type stats struct {
	Trigger        string   `json:"trigger"`
	Before         int      `json:"context_tokens_before"`
	After          int      `json:"context_tokens_after"`
	Window         int      `json:"context_window"`
	MessagesBefore int      `json:"messages_count_before"`
	MessagesAfter  int      `json:"messages_count_after"`
	How            clip.How `json:"how"`
	Model          string   `json:"model,omitempty"`
	From           int      `json:"from_position"`
	To             int      `json:"to_position"`
	FromSeq        int64    `json:"from_seq"`
	ToSeq          int64    `json:"to_seq"`
	WordsBefore    string   `json:"words_before,omitempty"`
	WordsAfter     string   `json:"words_after,omitempty"`
}
