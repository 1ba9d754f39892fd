package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Latest returns the compaction that made a conversation's current view, not counting edits of policies; ErrNotFound if
// there is none.
func (s *Store) Latest(ctx context.Context, org db.Org, c recall.Conversation) (Compaction, error) {
	return db.One[Compaction](ctx, s.DB, compactionRows+`
		AND k.conversation_key = @of AND k.reverted_at IS NULL AND k.trigger <> 'prune' ORDER BY k.frame DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "of": c.Key})
}

// ViewAt returns what the model saw of a conversation when the message at position was its last. If a compaction since
// then was reverted, it returns the view that the reversal brought back.
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

// Inherit copies to forked, a copy of conversation c by recall.Store.Fork, the compactions that made its view, and the
// reverted edits, which must not be made again. head is the Seq before the copy's first message.
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

// Restated returns a summary's stats for a copy of its conversation, where messages have other seqs.
func Restated(raw json.RawMessage, seqAt func(position int) int64) (json.RawMessage, error) {
	var restated stats
	if err := json.Unmarshal(raw, &restated); err != nil {
		return nil, fmt.Errorf("read the stats of a summary: %w", err)
	}
	restated.FromSeq, restated.ToSeq = seqAt(restated.From), seqAt(restated.To)
	return json.Marshal(restated)
}

// Restored returns a conversation with the view from before compaction k, plus the messages and the policies' edits
// since then. If k is a pruning, it returns the current view without k's edits. ErrConflict if k was already reverted,
// or another compaction came after it.
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
	if k.Trigger == plan.Pruned {
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

// Revert stores the view that Restored returned; tokens is the size of its prompt. The trigger is disarmed as after a
// compaction. ErrConflict if the view has changed since.
func (s *Store) Revert(ctx context.Context, org db.Org, k Compaction, restored recall.Conversation, tokens int) (
	Compaction, error) {
	err := db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		store := s.With(tx)
		view, err := store.Recall.ChangeView(ctx, org, restored, restored.ContextView, nil)
		if err != nil {
			return err
		}
		usage := recall.Usage{Fixed: restored.Fixed, Settled: tokens}
		if k.Trigger == plan.Pruned {
			usage.Settled, usage.Warned = restored.Settled, restored.Warned
		}
		if err := store.Recall.RecordUsage(ctx, org, restored.Key, view.Version, usage); err != nil {
			return err
		}
		return store.reversed(ctx, tx, org, k)
	})
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, k.ID)
}
