package compaction

import (
	"context"
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Remake makes a conversation's summaries again if they replace the message at position, or continue one that does. It
// works from what the log contains now, the oldest summary first, and returns the number of summaries. The default
// model writes them, if there is one; otherwise they are made without a model. If the conversation is gone, their texts
// are erased. erase removes from each new summary what must not be in it, whatever the model knows.
func (s *Compactor) Remake(ctx context.Context, org db.Org, conversation int64, position int,
	erase func(string) string) (int, error) {
	all, err := s.Written(ctx, org, conversation, position)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	id, err := db.One[string](ctx, s.DB, `
		SELECT id FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL`, org, conversation)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return 0, err
	}
	var c recall.Conversation
	if id != "" {
		if c, err = s.Recall.Conversation(ctx, org, "", id); err != nil {
			return 0, err
		}
	}
	for i := range all {
		if err := s.remake(ctx, org, c, all[:i+1], erase); err != nil {
			return i, err
		}
	}
	return len(all), nil
}

// remake makes the last of these summaries again. The others were already made again.
func (s *Compactor) remake(ctx context.Context, org db.Org, c recall.Conversation, all []store.Written,
	erase func(string) string) error {
	last := &all[len(all)-1]
	old, sum := last.Text, clip.Summary{Text: "[The summary was erased.]", How: clip.Extracted}
	if c.Key != 0 {
		e := clip.Evicted{Budget: max(tokens.Estimate(old), plan.MinBudget)}
		from := last.From
		for _, before := range all[:len(all)-1] {
			if before.To < last.To && before.From <= last.From {
				from = before.To + 1
				e.Previous = &clip.Summary{Text: before.Text, From: before.From, To: before.To, FromSeq: before.FromSeq,
					ToSeq: before.ToSeq}
			}
		}
		messages, err := s.Recall.Between(ctx, org, c, from, last.To)
		if err != nil {
			return err
		}
		e.Messages = slices.DeleteFunc(messages, func(m recall.Message) bool {
			return m.Role == recall.System || m.Role == recall.Summary
		})
		var model *summary.Model
		if s.Models != nil {
			model = s.Models(ctx, "")
		}
		if sum, err = summary.Summarize(ctx, e, plan.Defaults(), model); err != nil {
			return err
		}
	}
	sum.Text = erase(sum.Text)
	last.Text = sum.Text
	return s.Rewrite(ctx, org, *last, old, sum.How)
}
