package compaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// Store keeps compactions in Postgres.
type Store struct {
	DB     db.DB
	Recall *recall.Store

	// Models returns the model that writes summaries by its handle, provider/model; an empty handle means the default.
	// If Models is nil or returns nil, summaries are extracted without a model.
	Models func(ctx context.Context, handle string) *Model

	// Extracted, if not nil, is called with a compaction whose summary was extracted although there is a model, and with
	// what the model's provider said, for the operator; empty if the compaction's Why says all.
	Extracted func(ctx context.Context, c Compaction, detail string)

	// Made, if not nil, is called with each compaction that was committed.
	Made func(ctx context.Context, c Compaction)
}

// With returns the store with all statements in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx), Models: s.Models, Extracted: s.Extracted, Made: s.Made}
}

// Compaction is a change of what a model sees of a conversation. The messages that it hid stay in the log, from FromSeq
// to ToSeq.
type Compaction struct {
	Key             int64   `db:"key" json:"-"`
	ID              string  `db:"id" json:"id"`
	AgentID         string  `db:"agent_id" json:"agent_id"`
	ConversationID  *string `db:"conversation_id" json:"conversation_id"` // nil: the default conversation
	ConversationKey int64   `db:"conversation_key" json:"-"`
	Version         int     `db:"frame" json:"-"` // of the view that it made
	Trigger         string  `db:"trigger" json:"trigger"`
	Mode            Mode    `db:"mode" json:"mode" enum:"sliding_window,all,self_compact_all,self_compact_sliding_window"`
	How             *How    `db:"how" json:"how"`     // nil if clipping was enough
	Model           *string `db:"model" json:"model"` // nil if none wrote the summary
	ModelCalls      int     `db:"model_calls" json:"model_calls"`
	PromptTokens    int     `db:"prompt_tokens" json:"prompt_tokens"` // of the calls, as the provider counted
	OutputTokens    int     `db:"output_tokens" json:"output_tokens"`
	// why the first way of making the summary failed; nil if it did not
	Why            *string         `db:"why" json:"why"`
	FromPosition   *int            `db:"from_position" json:"from_position"`
	ToPosition     *int            `db:"to_position" json:"to_position"`
	FromSeq        *int64          `db:"from_seq" json:"from_seq"`
	ToSeq          *int64          `db:"to_seq" json:"to_seq"`
	SummaryID      *string         `db:"summary_message_id" json:"summary_message_id"`
	Summary        *string         `db:"summary" json:"summary"`
	Window         int             `db:"window_tokens" json:"context_window"`
	TokensBefore   int             `db:"tokens_before" json:"context_tokens_before"`
	TokensAfter    int             `db:"tokens_after" json:"context_tokens_after"`
	MessagesBefore int             `db:"messages_before" json:"messages_count_before"`
	MessagesAfter  int             `db:"messages_after" json:"messages_count_after"`
	Milliseconds   int64           `db:"duration_ms" json:"duration_ms"`
	Before         json.RawMessage `db:"before" json:"-"` // a viewBefore: what it replaced
	Policy         *string         `db:"policy" json:"policy,omitempty" doc:"That planned it; absent if none did."`
	Steps          []StepCount     `db:"steps" json:"steps,omitempty" doc:"Of the policy: edits, and tokens saved."`
	Edits          json.RawMessage `db:"edits" json:"-"` // that the policy made
	CreatedAt      time.Time       `db:"created_at" json:"created_at"`
	RevertedAt     *time.Time      `db:"reverted_at" json:"reverted_at"`

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"What began it; null if unknown."`
}

const compactionRows = `
	SELECT k.key, k.id, a.id AS agent_id, CASE WHEN NOT c.is_default THEN c.id END AS conversation_id, k.conversation_key,
	       k.frame, k.trigger, k.mode, k.how, k.model, k.model_calls, k.prompt_tokens, k.output_tokens, k.why,
	       k.from_position, k.to_position, k.from_seq, k.to_seq, 'message-' || m.id AS summary_message_id,
	       m.content -> 0 ->> 'text' AS summary,
	       k.window_tokens, k.tokens_before, k.tokens_after, k.messages_before, k.messages_after, k.duration_ms, k.before,
	       k.policy, k.steps, k.edits, k.created_at, k.reverted_at, k.provenance
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
	where, of := ` AND c.agent_key = @of`, c.AgentKey
	if conversation != "" {
		where, of = ` AND k.conversation_key = @of`, c.Key
	}
	p.Order = "key"
	return db.List[Compaction](ctx, s.DB, p, compactionRows+where, pgx.StrictNamedArgs{"org": org, "of": of})
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
	Policy         string // that planned it; empty if none did
	Mode           Mode
	Window         int
	Summary        *Summary // nil if clipping is enough
	FirstVisible   int
	Kept           []int
	Edits          []Edit
	Visible        int // tokens of the messages that stay in view, and of the old summary if it stays
	Before, After  int // tokens of the whole prompt
	MessagesBefore int // with the system prompt
	MessagesAfter  int
	Took           time.Duration

	pruned *Pruning // nil of a compaction
	steps  []StepCount
}

// usage returns how full the window is after the change. A policy's edits leave the trigger as it was.
func (ch Change) usage(c recall.Conversation) recall.Usage {
	if ch.pruned != nil {
		return recall.Usage{Fixed: c.Fixed, Settled: c.Settled, Warned: c.Warned}
	}
	return recall.Usage{Fixed: c.Fixed, Settled: ch.After}
}

// stats are stored with the message of a summary: those of Letta, and the range that the summary replaces.
type stats struct {
	Trigger        string `json:"trigger"`
	Before         int    `json:"context_tokens_before"`
	After          int    `json:"context_tokens_after"`
	Window         int    `json:"context_window"`
	MessagesBefore int    `json:"messages_count_before"`
	MessagesAfter  int    `json:"messages_count_after"`
	How            How    `json:"how"`
	Model          string `json:"model,omitempty"`
	From           int    `json:"from_position"`
	To             int    `json:"to_position"`
	FromSeq        int64  `json:"from_seq"`
	ToSeq          int64  `json:"to_seq"`
	WordsBefore    string `json:"words_before,omitempty"`
	WordsAfter     string `json:"words_after,omitempty"`
}

// Commit changes the view of a conversation in one transaction. ErrConflict if the view changed since the conversation
// was read. Messages that were appended since stay in view.
func (s *Store) Commit(ctx context.Context, org db.Org, c recall.Conversation, ch Change) (Compaction, error) {
	clips, err := json.Marshal(ch.Edits)
	if err != nil || ch.Edits == nil {
		clips = json.RawMessage(`[]`)
	}
	summary, err := ch.summaryDraft()
	if err != nil {
		return Compaction{}, err
	}
	next := recall.ContextView{Version: c.Version, FirstVisible: ch.FirstVisible, Kept: ch.Kept, SummaryAt: c.SummaryAt,
		Clipped: clips, HiddenTokens: c.Tokens - int64(ch.Visible)}
	var made Compaction
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		before, err := in.before(ctx, org, c, ch)
		if err != nil {
			return err
		}
		view, err := in.Recall.ChangeView(ctx, org, c, next, summary)
		if err != nil {
			return err
		}
		args := ch.arguments(view)
		args["org"], args["conversation"], args["before"] = org, c.Key, before
		if made, err = in.insert(ctx, org, args); err != nil {
			return err
		}
		if err := in.Recall.RecordUsage(ctx, org, c.Key, view.Version, ch.usage(c)); err != nil {
			return err
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: c.AgentID, Type: event.Compacted, RefID: made.ID})
		return err
	})
	return made, err
}

// summaryDraft returns the message of the new summary; nil if there is none.
func (ch Change) summaryDraft() (*recall.Draft, error) {
	if ch.Summary == nil {
		return nil, nil
	}
	sum := ch.Summary
	raw, err := json.Marshal(stats{ch.Trigger, ch.Before, ch.After, ch.Window, ch.MessagesBefore, ch.MessagesAfter,
		sum.How, sum.Model, sum.From, sum.To, sum.FromSeq, sum.ToSeq, sum.Before, sum.After})
	return &recall.Draft{Role: recall.Summary, Content: []recall.Part{{Type: recall.Text, Text: sum.Text, Stats: raw}}},
		err
}

// arguments returns the columns of the row of a change that made a view.
func (ch Change) arguments(view recall.ContextView) pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{"frame": view.Version, "trigger": ch.Trigger, "mode": ch.Mode, "window": ch.Window,
		"tokens_before": ch.Before, "tokens_after": ch.After, "messages_before": ch.MessagesBefore,
		"messages_after": ch.MessagesAfter, "duration": ch.Took.Milliseconds(), "how": nil, "model": nil, "calls": 0,
		"prompt": 0, "output": 0, "why": nil, "from": nil, "to": nil, "from_seq": nil, "to_seq": nil, "summary": nil,
		"policy": nil, "steps": nil, "edits": nil}
	if ch.Policy != "" {
		args["policy"] = ch.Policy
	}
	if ch.pruned != nil {
		args["steps"], args["edits"] = ch.steps, ch.pruned.Edits
		asked := ch.pruned.Asked
		args["calls"], args["prompt"], args["output"] = asked.Calls, asked.PromptTokens, asked.OutputTokens
	}
	if sum := ch.Summary; sum != nil {
		args["how"], args["calls"], args["summary"] = sum.How, sum.ModelCalls, view.SummaryAt
		args["prompt"], args["output"] = sum.PromptTokens, sum.OutputTokens
		if why := clean(sum.Why); why != "" { // a provider's words may hold characters that Postgres refuses
			args["why"] = why
		}
		args["from"], args["to"], args["from_seq"], args["to_seq"] = sum.From, sum.To, sum.FromSeq, sum.ToSeq
		if sum.Model != "" {
			args["model"] = sum.Model
		}
	}
	return args
}

func (s *Store) insert(ctx context.Context, org db.Org, args pgx.StrictNamedArgs) (Compaction, error) {
	args["provenance"] = db.ProvenanceOf(ctx)
	id, err := db.One[string](ctx, s.DB, `
		INSERT INTO compactions (org, conversation_key, frame, trigger, mode, how, model, model_calls, prompt_tokens,
		                         output_tokens, why, from_position, to_position, from_seq, to_seq, summary_position,
		                         window_tokens, tokens_before, tokens_after, messages_before, messages_after, duration_ms,
		                         before, after_position, policy, steps, edits, provenance)
		SELECT @org, @conversation, @frame, @trigger, @mode, @how, @model, @calls, @prompt, @output, @why,
		       @from, @to, @from_seq, @to_seq, @summary, @window, @tokens_before, @tokens_after,
		       @messages_before, @messages_after, @duration, @before, coalesce(@summary - 1, messages),
		       @policy, @steps, @edits, @provenance
		FROM conversations WHERE org = @org AND key = @conversation
		RETURNING id`, args)
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, id)
}

// Latest returns the compaction that made the current view of a conversation, apart from the edits of policies;
// ErrNotFound if none did.
func (s *Store) Latest(ctx context.Context, org db.Org, c recall.Conversation) (Compaction, error) {
	return db.One[Compaction](ctx, s.DB, compactionRows+`
		AND k.conversation_key = @of AND k.reverted_at IS NULL AND k.trigger <> 'prune' ORDER BY k.frame DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "of": c.Key})
}

// ViewAt returns what the model saw of a conversation when the message at a position was its last. Where a compaction
// since then was reverted, it is what the reversal brought back.
func (s *Store) ViewAt(ctx context.Context, org db.Org, c recall.Conversation, position int) (recall.ContextView,
	error) {
	type row struct {
		Frame  int             `db:"frame"`
		Before json.RawMessage `db:"before"`
	}
	next, err := db.One[row](ctx, s.DB, `
		SELECT frame, before FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND after_position >= $3
		ORDER BY frame LIMIT 1`, org, c.Key, position)
	if errors.Is(err, db.ErrNotFound) {
		return c.ContextView, nil
	}
	if err != nil {
		return recall.ContextView{}, err
	}
	return s.readBefore(ctx, org, c.Key, next.Frame, next.Before)
}

// Inherit gives a copy of a conversation, made by recall.Store.Fork, the compactions that made its view, and the edits
// that were reverted, which are not made again. head is the Seq before that of its first message.
func (s *Store) Inherit(ctx context.Context, org db.Org, c, forked recall.Conversation, head int64) error {
	_, err := s.DB.Exec(ctx, `
		INSERT INTO compactions (org, conversation_key, frame, trigger, mode, how, model, model_calls, prompt_tokens,
		                         output_tokens, why, from_position, to_position, from_seq, to_seq, summary_position,
		                         window_tokens, tokens_before, tokens_after, messages_before, messages_after, duration_ms,
		                         before, after_position, policy, steps, edits, created_at, reverted_at, provenance)
		SELECT org, $3, frame, trigger, mode, how, model, model_calls, prompt_tokens, output_tokens, why, from_position,
		       to_position, $5 + from_position, $5 + to_position, summary_position, window_tokens, tokens_before,
		       tokens_after, messages_before, messages_after, duration_ms, before, after_position, policy,
		       steps, edits, created_at, reverted_at, provenance
		FROM compactions
		WHERE org = $1 AND conversation_key = $2 AND after_position < $4 AND (reverted_at IS NULL OR trigger = 'prune')
		ORDER BY frame`, org, c.Key, forked.Key, forked.Messages, head)
	return db.Error(err)
}

// Restated returns the stats of a summary in a copy of its conversation, whose messages have other numbers in the
// agent's log.
func Restated(raw json.RawMessage, seqAt func(position int) int64) (json.RawMessage, error) {
	var of stats
	if err := json.Unmarshal(raw, &of); err != nil {
		return nil, fmt.Errorf("read the stats of a summary: %w", err)
	}
	of.FromSeq, of.ToSeq = seqAt(of.From), seqAt(of.To)
	return json.Marshal(of)
}

// Restored returns a conversation with the view from before a compaction, the messages appended since, and the edits
// that policies made since; of a pruning, the current view without its edits. ErrConflict if the compaction was
// reverted already, or another came after it.
func (s *Store) Restored(ctx context.Context, org db.Org, k Compaction) (recall.Conversation, error) {
	name := recall.DefaultConversation
	if k.ConversationID != nil {
		name = *k.ConversationID
	}
	c, err := s.Recall.Conversation(ctx, org, k.AgentID, name)
	if err != nil {
		return recall.Conversation{}, err
	}
	if k.RevertedAt != nil {
		return recall.Conversation{}, db.Conflict("Compaction %s was reverted already", k.ID)
	}
	if k.Trigger == Pruned {
		return s.unpruned(ctx, org, k, c)
	}
	latest, err := s.Latest(ctx, org, c)
	if errors.Is(err, db.ErrNotFound) || err == nil && latest.Version < k.Version { // since k was read
		return recall.Conversation{}, db.Conflict("Compaction %s was reverted already", k.ID)
	}
	if err != nil {
		return recall.Conversation{}, err
	}
	if latest.ID != k.ID {
		return recall.Conversation{}, db.Conflict("Compaction %s came after this one: revert that one first", latest.ID)
	}
	before := recall.ContextView{Version: c.Version}
	if err := json.Unmarshal(k.Before, &before); err != nil {
		return recall.Conversation{}, fmt.Errorf("read the view before compaction %s: %w", k.ID, err)
	}
	c.ContextView = before
	return s.prunedSince(ctx, org, k, c)
}

// Revert restores the view that Restored returned, whose prompt has some tokens. The trigger is disarmed as after a
// compaction. ErrConflict if the view changed since.
func (s *Store) Revert(ctx context.Context, org db.Org, k Compaction, restored recall.Conversation, tokens int) (
	Compaction, error) {
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		view, err := in.Recall.ChangeView(ctx, org, restored, restored.ContextView, nil)
		if err != nil {
			return err
		}
		usage := recall.Usage{Fixed: restored.Fixed, Settled: tokens}
		if k.Trigger == Pruned {
			usage.Settled, usage.Warned = restored.Settled, restored.Warned
		}
		if err := in.Recall.RecordUsage(ctx, org, restored.Key, view.Version, usage); err != nil {
			return err
		}
		return in.reversed(ctx, tx, org, k)
	})
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, k.ID)
}
