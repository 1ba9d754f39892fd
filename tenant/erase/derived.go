package erase

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/db"
)

// derived makes summaries of erased messages again, and deletes the prompts that showed those messages.
func (w *sweep) derived(ctx context.Context) error {
	type row struct {
		Conversation int64 `db:"conversation_key"`
		Position     int   `db:"position"`
	}
	list, err := db.All[row](ctx, w.DB, `
		SELECT conversation_key, min(position) AS position FROM erased_messages
		WHERE org = $1 AND erasure_key = $2 AND NOT remade
		GROUP BY conversation_key ORDER BY conversation_key`, w.org, w.e.Key)
	if err != nil {
		return err
	}
	for _, r := range list {
		n, err := w.Compaction.Remake(ctx, w.org, r.Conversation, r.Position, w.withoutErased)
		if err != nil {
			return err
		}
		w.report.Summaries += n
		if err := w.prompts(ctx, r.Conversation, r.Position); err != nil {
			return err
		}
		if err := db.Exec(ctx, w.DB, `
			UPDATE erased_messages SET remade = true WHERE org = $1 AND erasure_key = $2 AND conversation_key = $3`,
			w.org, w.e.Key, r.Conversation); err != nil {
			return err
		}
	}
	return nil
}

// withoutErased returns a text that was made from messages, without the erased texts.
func (w *sweep) withoutErased(text string) string {
	for _, m := range []*matcher{w.m, w.quotes} {
		if m != nil {
			text, _ = m.erase(text)
		}
	}
	return text
}

// derivedAgain calls derived for all erased messages once more, because a compaction that began before the erasure may
// have read them.
func (w *sweep) derivedAgain(ctx context.Context) error {
	if err := db.Exec(ctx, w.DB, `UPDATE erased_messages SET remade = false WHERE org = $1 AND erasure_key = $2`, w.org,
		w.e.Key); err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return w.derived(ctx)
}

// countDerived counts, for the report, the summaries and stored prompts that the erasure of whole messages would make
// again or delete.
func (w *sweep) countDerived(ctx context.Context) error {
	type row struct {
		Summaries int `db:"summaries"`
		Prompts   int `db:"prompts"`
	}
	n, err := db.One[row](ctx, w.DB, `
		SELECT (SELECT count(DISTINCT k.key) FROM messages m
		        JOIN compactions k ON k.org = $1 AND k.conversation_key = m.conversation_key
		         AND k.to_position >= m.position AND k.summary_position IS NOT NULL
		        WHERE m.org = $1 AND m.key = ANY ($2)) AS summaries,
		       (SELECT count(DISTINCT p.key) FROM messages m
		        JOIN prompts p ON p.org = $1 AND p.conversation_key = m.conversation_key
		         AND (p.last_position >= m.position OR p.last_position = 0)
		        WHERE m.org = $1 AND m.key = ANY ($2)) AS prompts`, w.org, w.whole)
	w.report.Summaries, w.report.Prompts = n.Summaries, n.Prompts
	return err
}
