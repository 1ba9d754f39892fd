package store

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// Commit changes a conversation's view in one transaction. ErrConflict if the view has changed since c was read.
// Messages that were appended since then stay in view.
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
	var compaction Compaction
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		store := s.With(tx)
		before, err := store.before(ctx, org, c, ch)
		if err != nil {
			return err
		}
		view, err := store.Recall.ChangeView(ctx, org, c, next, summary)
		if err != nil {
			return err
		}
		args := ch.arguments(view)
		args["org"], args["conversation"], args["before"] = org, c.Key, before
		if compaction, err = store.insert(ctx, org, args); err != nil {
			return err
		}
		if err := store.Recall.RecordUsage(ctx, org, c.Key, view.Version, ch.usage(c)); err != nil {
			return err
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: c.AgentID, Type: event.Compacted, RefID: compaction.ID})
		return err
	})
	return compaction, err
}

// summaryDraft returns the new summary's message; nil if there is none.
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

// arguments returns the columns of the row for a change that made this view.
func (ch Change) arguments(view recall.ContextView) pgx.StrictNamedArgs {
	args := pgx.StrictNamedArgs{"frame": view.Version, "trigger": ch.Trigger, "mode": ch.Mode, "window": ch.Window,
		"tokens_before": ch.Before, "tokens_after": ch.After, "messages_before": ch.MessagesBefore,
		"messages_after": ch.MessagesAfter, "duration": ch.Took.Milliseconds(), "how": nil, "model": nil, "calls": 0,
		"prompt": 0, "output": 0, "why": nil, "from": nil, "to": nil, "from_seq": nil, "to_seq": nil, "summary": nil,
		"policy": nil, "steps": nil, "edits": nil, "focus": nil}
	if ch.Focus != "" {
		args["focus"] = ch.Focus
	}
	if ch.Policy != "" {
		args["policy"] = ch.Policy
	}
	if ch.pruned != nil {
		args["steps"], args["edits"] = ch.steps, ch.pruned.Edits
		models := ch.pruned.Asked
		args["calls"], args["prompt"], args["output"] = models.Calls, models.PromptTokens, models.OutputTokens
		if why := prose.Clean(models.Why); why != "" {
			args["why"] = why
		}
	}
	if sum := ch.Summary; sum != nil {
		args["how"], args["calls"], args["summary"] = sum.How, sum.ModelCalls, view.SummaryAt
		args["prompt"], args["output"] = sum.PromptTokens, sum.OutputTokens
		if why := prose.Clean(sum.Why); why != "" { // a provider's words may contain characters that Postgres refuses
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
		                         before, after_position, policy, steps, edits, focus,
		                         provenance)
		SELECT @org, @conversation, @frame, @trigger, @mode, @how, @model, @calls, @prompt, @output, @why,
		       @from, @to, @from_seq, @to_seq, @summary, @window, @tokens_before, @tokens_after,
		       @messages_before, @messages_after, @duration, @before, coalesce(@summary - 1, messages),
		       @policy, @steps, @edits, @focus, @provenance
		FROM conversations WHERE org = @org AND key = @conversation
		RETURNING id`, args)
	if err != nil {
		return Compaction{}, err
	}
	return s.Compaction(ctx, org, id)
}
