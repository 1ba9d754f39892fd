package recall

import (
	"bytes"
	"context"

	"github.com/loci-memory/loci/db"
)

// unanswered is a message of a turn that failed.
type unanswered struct {
	Position int     `db:"position"`
	Tokens   int     `db:"tokens"`
	Role     Role    `db:"role"`
	Name     *string `db:"name"`
	Sender   *string `db:"sender_id"`
	Content  []Part  `db:"content"`
}

// replaceFailed takes messages of failed turns out of the view that fresh entries say again. The log keeps them.
func (a *appending) replaceFailed(ctx context.Context, fresh []*entry) error {
	if a.restores || a.end.Refusal == nil || a.end.Refusal.Failed == nil {
		return nil
	}
	failed := a.end.Refusal.Failed
	was, err := db.All[unanswered](ctx, a.db, `
		SELECT position, tokens, role, name, sender_id, content FROM messages
		WHERE org = $1 AND conversation_key = $2 AND position <= $3 AND role IN ('user', 'system') AND refused IS NULL
		  AND (position >= $4 OR position = ANY ($5)) AND purpose = '' AND NOT is_err AND position > coalesce((
			SELECT max(position) FROM messages
			WHERE org = $1 AND conversation_key = $2 AND role = 'assistant' AND NOT is_err AND purpose = ''
			  AND refused IS NULL AND position <= $3), 0)
		ORDER BY position`, a.org, a.end.Key, failed.At, a.end.FirstVisible, a.end.Kept)
	if err != nil {
		return err
	}
	var left []int
	for _, m := range was {
		if saidAgain(m, fresh) {
			left, a.end.HiddenTokens = append(left, m.Position), a.end.HiddenTokens+int64(m.Tokens)
		}
	}
	if len(left) == 0 {
		return nil
	}
	a.end.Version++
	_, err = a.db.Exec(ctx, `
		WITH hidden AS (
			UPDATE messages SET refused = $4 WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)
		)
		UPDATE conversations
		SET frame = frame + 1, hidden_tokens = least($5, tokens), reported_tokens = 0, reported_position = 0
		WHERE org = $1 AND key = $2`, a.org, a.end.Key, left,
		Refused{Status: failed.Status, Message: "The turn failed, and the text was sent again.", Again: true},
		a.end.HiddenTokens)
	return db.Error(err)
}

// saidAgain reports whether one of some entries says what a message does, of the same sender.
func saidAgain(m unanswered, fresh []*entry) bool {
	for _, e := range fresh {
		if e.Role == m.Role && sameText(e.SenderID, m.Sender) &&
			bytes.Equal(digestSpelled(e.Role, e.Name, e.Content), digestSpelled(m.Role, m.Name, m.Content)) {
			return true
		}
	}
	return false
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
