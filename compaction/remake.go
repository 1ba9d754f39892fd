package compaction

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// made is a stored summary, with the range of positions that it replaces.
type made struct {
	Compaction int64  `db:"compaction"`
	Message    int64  `db:"message"`
	Text       string `db:"text"`
	From       int    `db:"from_position"`
	To         int    `db:"to_position"`
	FromSeq    int64  `db:"from_seq"`
	ToSeq      int64  `db:"to_seq"`
}

// Remake makes the summaries of a conversation again that replace the message at a position or continue one that does,
// from what the log has now, the oldest first. It returns how many there are. The model that writes summaries is asked,
// if there is one; else they are extracted. Without the conversation, which may be deleted, their texts are erased.
// erase takes out of a new summary what must not be in it, whatever its model knows.
func (s *Store) Remake(ctx context.Context, org db.Org, conversation int64, position int, erase func(string) string) (
	int, error) {
	all, err := db.All[made](ctx, s.DB, `
		SELECT k.key AS compaction, m.key AS message, m.content -> 0 ->> 'text' AS text, k.from_position, k.to_position,
		       k.from_seq, k.to_seq
		FROM compactions k
		JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.summary_position
		WHERE k.org = $1 AND m.org = $1 AND k.conversation_key = $2 AND k.to_position >= $3
		ORDER BY k.frame`, org, conversation, position)
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

// remake makes the last of some summaries of a conversation again. The others are made again already.
func (s *Store) remake(ctx context.Context, org db.Org, c recall.Conversation, all []made, erase func(string) string,
) error {
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
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := s.Recall.With(tx).EraseFrom(ctx, org, last.Message, recall.Eraser{Text: func(text string) (string, int) {
			if text == old {
				return sum.Text, 1
			}
			return text, 0
		}}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE compactions SET how = $3, why = NULL WHERE org = $1 AND key = $2`, org,
			last.Compaction, sum.How)
		return db.Error(err)
	})
}
