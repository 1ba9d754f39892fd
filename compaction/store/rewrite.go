package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Written is a stored summary, and the range of positions that it replaces.
type Written struct {
	Compaction int64  `db:"compaction"`
	Message    int64  `db:"message"`
	Text       string `db:"text"`
	From       int    `db:"from_position"`
	To         int    `db:"to_position"`
	FromSeq    int64  `db:"from_seq"`
	ToSeq      int64  `db:"to_seq"`
}

// Written returns those summaries of a conversation that replace the message at position or a later one, the oldest
// first.
func (s *Store) Written(ctx context.Context, org db.Org, conversation int64, position int) ([]Written, error) {
	return db.All[Written](ctx, s.DB, `
		SELECT k.key AS compaction, m.key AS message, m.content -> 0 ->> 'text' AS text, k.from_position, k.to_position,
		       k.from_seq, k.to_seq
		FROM compactions k
		JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.summary_position
		WHERE k.org = $1 AND m.org = $1 AND k.conversation_key = $2 AND k.to_position >= $3
		ORDER BY k.frame`, org, conversation, position)
}

// Rewrite replaces the stored text of a summary, old, by w.Text. What it was asked to keep may name what is erased, and
// is removed.
func (s *Store) Rewrite(ctx context.Context, org db.Org, w Written, old string, how clip.How) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := s.Recall.With(tx).EraseFrom(ctx, org, w.Message, recall.Eraser{Text: func(text string) (string, int) {
			if text == old {
				return w.Text, 1
			}
			return text, 0
		}}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE compactions SET how = $3, why = NULL, focus = NULL WHERE org = $1 AND key = $2`, org,
			w.Compaction, how)
		return db.Error(err)
	})
}
