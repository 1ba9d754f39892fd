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

	// Models gives the model that writes summaries by its handle, provider/model, which is empty for the one that is asked by default. nil, as
	// a function or as what it returns, is none: summaries are extracted.
	Models func(ctx context.Context, handle string) *Model

	// Extracted is told of a compaction whose summary was extracted although there is a model, and of its Why. nil tells nobody.
	Extracted func(ctx context.Context, c Compaction)
}

// With returns the store working in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx), Models: s.Models, Extracted: s.Extracted}
}

// Compaction is a change of what a model sees of a conversation. What it hid stays in the log, from FromSeq to ToSeq.
type Compaction struct {
	Key             int64           `db:"key" json:"-"`
	ID              string          `db:"id" json:"id"`
	AgentID         string          `db:"agent_id" json:"agent_id"`
	ConversationID  *string         `db:"conversation_id" json:"conversation_id"` // nil: the agent's default conversation
	ConversationKey int64           `db:"conversation_key" json:"-"`
	Frame           int             `db:"frame" json:"-"` // that it made
	Trigger         string          `db:"trigger" json:"trigger"`
	Mode            Mode            `db:"mode" json:"mode"`
	How             *How            `db:"how" json:"how"`     // nil where clipping was enough
	Model           *string         `db:"model" json:"model"` // nil where none wrote the summary
	ModelCalls      int             `db:"model_calls" json:"model_calls"`
	PromptTokens    int             `db:"prompt_tokens" json:"prompt_tokens"` // of these calls, as the provider counted
	OutputTokens    int             `db:"output_tokens" json:"output_tokens"`
	Why             *string         `db:"why" json:"why"` // the summary was not made in the first way; nil where it was
	FromPosition    *int            `db:"from_position" json:"from_position"`
	ToPosition      *int            `db:"to_position" json:"to_position"`
	FromSeq         *int64          `db:"from_seq" json:"from_seq"`
	ToSeq           *int64          `db:"to_seq" json:"to_seq"`
	SummaryID       *string         `db:"summary_message_id" json:"summary_message_id"`
	Summary         *string         `db:"summary" json:"summary"`
	Window          int             `db:"window_tokens" json:"context_window"`
	TokensBefore    int             `db:"tokens_before" json:"context_tokens_before"`
	TokensAfter     int             `db:"tokens_after" json:"context_tokens_after"`
	MessagesBefore  int             `db:"messages_before" json:"messages_count_before"`
	MessagesAfter   int             `db:"messages_after" json:"messages_count_after"`
	Milliseconds    int64           `db:"duration_ms" json:"duration_ms"`
	Before          json.RawMessage `db:"before" json:"-"` // the recall.Frame that it took the place of
	CreatedAt       time.Time       `db:"created_at" json:"created_at"`
	RevertedAt      *time.Time      `db:"reverted_at" json:"reverted_at"`
}

const compactionRows = `
	SELECT k.key, k.id, a.id AS agent_id, CASE WHEN NOT c.is_default THEN c.id END AS conversation_id, k.conversation_key, k.frame, k.trigger,
	       k.mode, k.how, k.model, k.model_calls, k.prompt_tokens, k.output_tokens, k.why, k.from_position,
	       k.to_position, k.from_seq, k.to_seq, 'message-' || m.id AS summary_message_id, m.content -> 0 ->> 'text' AS summary,
	       k.window_tokens, k.tokens_before, k.tokens_after, k.messages_before, k.messages_after, k.duration_ms, k.before,
	       k.created_at, k.reverted_at
	FROM compactions k JOIN conversations c ON c.key = k.conversation_key AND c.deleted_at IS NULL JOIN agents a ON a.key = c.agent_key
	LEFT JOIN messages m ON m.conversation_key = k.conversation_key AND m.position = k.summary_position
	WHERE k.org = @org`

// Compactions lists those of an agent, or of one of its conversations where conversation is not empty.
func (s *Store) Compactions(ctx context.Context, org db.Org, agentID, conversation string, p db.Page) ([]Compaction, error) {
	c, err := s.Recall.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return nil, err
	}
	where, of := ` AND c.agent_key = @of`, c.AgentKey
	if conversation != "" {
		where, of = ` AND k.conversation_key = @of`, c.Key
	}
	return db.List[Compaction](ctx, s.DB, p, compactionRows+where, "key", pgx.StrictNamedArgs{"org": org, "of": of})
}

// Compaction returns a compaction by its id.
func (s *Store) Compaction(ctx context.Context, org db.Org, id string) (Compaction, error) {
	k, err := db.One[Compaction](ctx, s.DB, compactionRows+` AND k.id = @id`, pgx.StrictNamedArgs{"org": org, "id": id})
	if errors.Is(err, db.ErrNotFound) {
		return Compaction{}, db.NotFound("Compaction with ID %s not found", id)
	}
	return k, err
}

// Change is what a compaction makes of a view.
type Change struct {
	Trigger        string // what it was for: manual, context_window_exceeded, …
	Mode           Mode
	Window         int
	Summary        *Summary // nil where clipping is enough
	FirstVisible   int
	Kept           []int
	Clips          []Clip
	Visible        int // tokens of the messages that stay in view, with a summary that none takes the place of
	Before, After  int // tokens of all that is sent
	MessagesBefore int // with the system prompt
	MessagesAfter  int
	Took           time.Duration
}

// stats are what a message with a summary keeps of how it came to be: Letta's, and the places of what it stands for.
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
}

// Commit makes a change of a conversation that was read, if what its model sees is still what it was then. ErrConflict if it is not.
// Messages that were appended since stay in view. No model is called while it holds the conversation.
func (s *Store) Commit(ctx context.Context, org db.Org, c recall.Conversation, ch Change) (Compaction, error) {
	before, err := json.Marshal(c.Frame)
	if err != nil {
		return Compaction{}, err
	}
	clips, err := json.Marshal(ch.Clips)
	if err != nil || ch.Clips == nil {
		clips = json.RawMessage(`[]`)
	}
	stand, err := ch.stand()
	if err != nil {
		return Compaction{}, err
	}
	next := recall.Frame{Version: c.Version, FirstVisible: ch.FirstVisible, Kept: ch.Kept, SummaryAt: c.SummaryAt, Clipped: clips,
		HiddenTokens: c.Tokens - int64(ch.Visible)}
	var made Compaction
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		frame, err := in.Recall.Reframe(ctx, org, c, next, stand)
		if err != nil {
			return err
		}
		if made, err = in.insert(ctx, org, c, frame, before, ch); err != nil {
			return err
		}
		if err := in.Recall.Gauge(ctx, org, c.Key, frame.Version, recall.Usage{Fixed: c.Fixed, Settled: ch.After}); err != nil {
			return err
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: c.AgentID, Type: event.Compacted, RefID: made.ID})
		return err
	})
	return made, err
}

// stand is the message that stands for what leaves the view; nil where nothing does.
func (ch Change) stand() (*recall.Draft, error) {
	if ch.Summary == nil {
		return nil, nil
	}
	sum := ch.Summary
	raw, err := json.Marshal(stats{ch.Trigger, ch.Before, ch.After, ch.Window, ch.MessagesBefore, ch.MessagesAfter, sum.How, sum.Model,
		sum.From, sum.To, sum.FromSeq, sum.ToSeq})
	return &recall.Draft{Role: recall.Summary, Content: []recall.Part{{Type: recall.Text, Text: sum.Text, Stats: raw}}}, err
}

func (s *Store) insert(ctx context.Context, org db.Org, c recall.Conversation, f recall.Frame, before json.RawMessage, ch Change) (Compaction, error) {
	args := pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "frame": f.Version, "trigger": ch.Trigger, "mode": ch.Mode, "window": ch.Window,
		"tokens_before": ch.Before, "tokens_after": ch.After, "messages_before": ch.MessagesBefore, "messages_after": ch.MessagesAfter,
		"duration": ch.Took.Milliseconds(), "before": before, "how": nil, "model": nil, "calls": 0, "prompt": 0, "output": 0, "why": nil,
		"from": nil, "to": nil, "from_seq": nil, "to_seq": nil, "summary": nil}
	if sum := ch.Summary; sum != nil {
		args["how"], args["calls"], args["summary"] = sum.How, sum.ModelCalls, f.SummaryAt
		args["prompt"], args["output"] = sum.PromptTokens, sum.OutputTokens
		if why := clean(sum.Why); why != "" { // a provider's words may have what Postgres takes in no text
			args["why"] = why
		}
		args["from"], args["to"], args["from_seq"], args["to_seq"] = sum.From, sum.To, sum.FromSeq, sum.ToSeq
		if sum.Model != "" {
			args["model"] = sum.Model
		}
	}
	id, err := db.One[string](ctx, s.DB, `
		INSERT INTO compactions (org, conversation_key, frame, trigger, mode, how, model, model_calls, prompt_tokens, output_tokens, why,
		                         from_position, to_position, from_seq, to_seq, summary_position, window_tokens, tokens_before, tokens_after,
		                         messages_before, messages_after, duration_ms, before)
		VALUES (@org, @conversation, @frame, @trigger, @mode, @how, @model, @calls, @prompt, @output, @why,
		        @from, @to, @from_seq, @to_seq, @summary, @window, @tokens_before, @tokens_after,
		        @messages_before, @messages_after, @duration, @before)
		RETURNING id`, args)
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, id)
}

// Latest returns the compaction that made the frame of a conversation; ErrNotFound if none did.
func (s *Store) Latest(ctx context.Context, org db.Org, c recall.Conversation) (Compaction, error) {
	return db.One[Compaction](ctx, s.DB, compactionRows+` AND k.conversation_key = @of AND k.reverted_at IS NULL ORDER BY k.frame DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "of": c.Key})
}

// Restored is a conversation as it was before a compaction, with what was appended since. ErrConflict if the compaction was reverted
// already, or another came after it.
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
	latest, err := s.Latest(ctx, org, c)
	if errors.Is(err, db.ErrNotFound) || err == nil && latest.Frame < k.Frame { // since k was read
		return recall.Conversation{}, db.Conflict("Compaction %s was reverted already", k.ID)
	}
	if err != nil {
		return recall.Conversation{}, err
	}
	if latest.ID != k.ID {
		return recall.Conversation{}, db.Conflict("Compaction %s came after this one: revert that one first", latest.ID)
	}
	var before recall.Frame
	if err := json.Unmarshal(k.Before, &before); err != nil {
		return recall.Conversation{}, fmt.Errorf("read what was before compaction %s: %w", k.ID, err)
	}
	before.Version = c.Version
	c.Frame = before
	return c, nil
}

// Revert gives a conversation the view back that Restored read of it. ErrConflict if the view was changed since.
func (s *Store) Revert(ctx context.Context, org db.Org, k Compaction, restored recall.Conversation) (Compaction, error) {
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.With(tx)
		if _, err := in.Recall.Reframe(ctx, org, restored, restored.Frame, nil); err != nil {
			return err
		}
		if err := db.Exec(ctx, tx, `UPDATE compactions SET reverted_at = now() WHERE org = $1 AND key = $2 AND reverted_at IS NULL`, org, k.Key); err != nil {
			return err
		}
		_, err := event.Append(ctx, tx, org, event.Event{AgentID: k.AgentID, Type: event.CompactionReverted, RefID: k.ID})
		return err
	})
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, k.ID)
}
