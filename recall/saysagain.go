package recall

import (
	"bytes"
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

// SaysAgain reports whether drafts say what the messages do with which a run began: the same senders, in the same
// order.
func (s *Store) SaysAgain(ctx context.Context, org db.Org, c Conversation, run string, drafts []Draft) (bool, error) {
	type row struct {
		Role    Role    `db:"role"`
		Name    *string `db:"name"`
		Sender  *string `db:"sender_id"`
		Content []Part  `db:"content"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT role, name, sender_id, content FROM messages
		WHERE org = $1 AND conversation_key = $2 AND run_id = $3 AND step_id IS NULL AND role IN ('user', 'system', 'tool')
		ORDER BY position LIMIT $4`, org, c.Key, run, len(drafts)+1)
	if err != nil || len(rows) < len(drafts) {
		return false, err
	}
	if more := rows[len(drafts):]; len(more) > 0 && more[0].Role == User {
		return false, nil
	}
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return false, err
	}
	for i, d := range drafts {
		e, err := newEntry(d, redactor, time.Now(), nil)
		if err != nil {
			return false, &DraftError{At: i, Err: err}
		}
		was := rows[i]
		if !sameText(e.SenderID, was.Sender) ||
			!bytes.Equal(digest(e.Role, e.Name, e.Content), digest(was.Role, was.Name, was.Content)) {
			return false, nil
		}
	}
	return true, nil
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
