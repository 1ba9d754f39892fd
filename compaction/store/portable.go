package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Portable is a compaction in the form that an agent's file carries.
type Portable struct {
	ID             string          `db:"id" json:"id"`
	ConversationID string          `db:"conversation_id" json:"conversation_id"`
	Version        int             `db:"frame" json:"version"`
	Trigger        string          `db:"trigger" json:"trigger"`
	Mode           plan.Mode       `db:"mode" json:"mode"`
	How            *clip.How       `db:"how" json:"how"`
	Model          *string         `db:"model" json:"model"`
	ModelCalls     int             `db:"model_calls" json:"model_calls"`
	PromptTokens   int             `db:"prompt_tokens" json:"prompt_tokens"`
	OutputTokens   int             `db:"output_tokens" json:"output_tokens"`
	Why            *string         `db:"why" json:"why"`
	FromPosition   *int            `db:"from_position" json:"from_position"`
	ToPosition     *int            `db:"to_position" json:"to_position"`
	FromSeq        *int64          `db:"from_seq" json:"from_seq"`
	ToSeq          *int64          `db:"to_seq" json:"to_seq"`
	SummaryAt      *int            `db:"summary_position" json:"summary_position"`
	Window         int             `db:"window_tokens" json:"window_tokens"`
	TokensBefore   int             `db:"tokens_before" json:"tokens_before"`
	TokensAfter    int             `db:"tokens_after" json:"tokens_after"`
	MessagesBefore int             `db:"messages_before" json:"messages_before"`
	MessagesAfter  int             `db:"messages_after" json:"messages_after"`
	Milliseconds   int64           `db:"duration_ms" json:"duration_ms"`
	AfterPosition  int             `db:"after_position" json:"after_position"`
	Before         json.RawMessage `db:"before" json:"before"`
	Policy         *string         `db:"policy" json:"policy,omitempty"`
	Steps          json.RawMessage `db:"steps" json:"steps,omitempty"`
	Edits          json.RawMessage `db:"edits" json:"edits,omitempty"`
	Focus          *string         `db:"focus" json:"focus,omitempty"`
	CreatedAt      time.Time       `db:"created_at" json:"created_at"`
	RevertedAt     *time.Time      `db:"reverted_at" json:"reverted_at"`

	Provenance *db.Provenance `db:"provenance" json:"provenance,omitempty"`
}

// Export lists the compactions of a conversation, the oldest first.
func (s *Store) Export(ctx context.Context, org db.Org, conversation int64) ([]Portable, error) {
	return db.All[Portable](ctx, s.DB, `
		SELECT k.id, c.id AS conversation_id, k.frame, k.trigger, k.mode, k.how, k.model, k.model_calls, k.prompt_tokens,
		       k.output_tokens, k.why, k.from_position, k.to_position, k.from_seq, k.to_seq, k.summary_position,
		       k.window_tokens, k.tokens_before, k.tokens_after, k.messages_before, k.messages_after, k.duration_ms, k.before,
		       k.after_position, k.policy, k.steps, k.edits, k.focus,
		       k.created_at, k.reverted_at, k.provenance
		FROM conversations c JOIN compactions k ON k.org = c.org AND k.conversation_key = c.key
		WHERE c.org = $1 AND c.key = $2
		ORDER BY k.key`, org, conversation)
}

// Triggers lists all triggers of compactions.
var Triggers = []string{Manual, Threshold, Idle, BeforePrompt, plan.Pruned}

// ways lists the ways in which summaries are made.
var ways = []clip.How{clip.Own, clip.Whole, clip.Clamped, clip.Middle, clip.Extracted}

// RestoreCompaction stores a restored conversation's compaction under its old id. ErrInvalid if Commit could not have
// made it.
func (s *Store) RestoreCompaction(ctx context.Context, org db.Org, k Portable) error {
	var before recall.ContextView
	if json.Unmarshal(k.Before, &before) != nil || before.FirstVisible < 1 {
		return db.Invalid("compaction %s: before is no view of a conversation", k.ID)
	}
	if !slices.Contains(Triggers, k.Trigger) || !slices.Contains(plan.Modes, k.Mode) ||
		k.How != nil && !slices.Contains(ways, *k.How) || k.Version < 1 || k.AfterPosition < 0 {
		return db.Invalid("compaction %s: trigger, mode, how or version is none of a compaction", k.ID)
	}
	var steps []plan.StepCount
	var edits []clip.Edit
	if len(k.Steps) > 0 && json.Unmarshal(k.Steps, &steps) != nil ||
		len(k.Edits) > 0 && json.Unmarshal(k.Edits, &edits) != nil || (k.Trigger == plan.Pruned) != (len(edits) > 0) {
		return db.Invalid("compaction %s: steps and edits are not those of a policy", k.ID)
	}
	return db.Exec(ctx, s.DB, `
		INSERT INTO compactions (id, org, conversation_key, frame, trigger, mode, how, model, model_calls, prompt_tokens,
		                         output_tokens, why, from_position, to_position, from_seq, to_seq, summary_position,
		                         window_tokens, tokens_before, tokens_after, messages_before, messages_after, duration_ms,
		                         before, after_position, policy, steps, edits, focus, created_at, reverted_at,
		                         provenance)
		SELECT @id, org, key, @frame, @trigger, @mode, @how, @model, @calls, @prompt, @output, @why, @from, @to, @from_seq,
		       @to_seq, @summary, @window, @tokens_before, @tokens_after, @messages_before, @messages_after, @duration,
		       @before, @after, @policy, @steps, @edits, @focus, @created, @reverted,
		       @provenance
		FROM conversations WHERE org = @org AND id = @conversation`,
		pgx.StrictNamedArgs{"id": k.ID, "org": org, "conversation": k.ConversationID, "frame": k.Version,
			"trigger": k.Trigger, "mode": k.Mode, "how": k.How, "model": k.Model, "calls": k.ModelCalls,
			"prompt": k.PromptTokens, "output": k.OutputTokens, "why": k.Why, "from": k.FromPosition, "to": k.ToPosition,
			"from_seq": k.FromSeq, "to_seq": k.ToSeq, "summary": k.SummaryAt, "window": k.Window,
			"tokens_before": k.TokensBefore, "tokens_after": k.TokensAfter, "messages_before": k.MessagesBefore,
			"messages_after": k.MessagesAfter, "duration": k.Milliseconds, "before": k.Before,
			"after": k.AfterPosition, "policy": k.Policy, "steps": k.Steps, "edits": k.Edits, "focus": k.Focus,
			"created": k.CreatedAt, "reverted": k.RevertedAt, "provenance": k.Provenance})
}

// MarkSummary adds to the draft of a summary from another server what a view needs: the range of messages that the
// summary replaces.
func MarkSummary(d *recall.Draft, of clip.Summary) error {
	raw, err := json.Marshal(stats{How: clip.Whole, From: of.From, To: of.To, FromSeq: of.FromSeq, ToSeq: of.ToSeq})
	if len(d.Content) > 0 {
		d.Content[0].Stats = raw
	}
	return err
}

// CheckView returns ErrInvalid if parts of a view in a file cannot be read: the conversation's clips, or the stats of
// its summaries.
func CheckView(clipped json.RawMessage, messages ...recall.PortableMessage) error {
	var clips []clip.Edit
	if len(clipped) > 0 && json.Unmarshal(clipped, &clips) != nil {
		return db.Invalid("view.clipped is no list of clips")
	}
	for _, m := range messages {
		if m.Role != recall.Summary {
			continue
		}
		if _, err := SummaryOf(recall.Message{ID: m.ID, Content: m.Content}); err != nil {
			return db.Invalid("%v", err)
		}
	}
	return nil
}
