package recall

import (
	"bytes"
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

// SaysAgain returns how many drafts, from the first, say what the messages do with which some runs began: the same
// senders, in the same order. It is 0 if not all of these messages are said again; for a run with more messages than
// drafts only those of tools may follow.
func (s *Store) SaysAgain(ctx context.Context, org db.Org, c Conversation, runs []string, drafts []Draft) (int, error) {
	type row struct {
		Role    Role    `db:"role"`
		Name    *string `db:"name"`
		Sender  *string `db:"sender_id"`
		Content []Part  `db:"content"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT role, name, sender_id, content FROM messages
		WHERE org = $1 AND conversation_key = $2 AND run_id = ANY ($3) AND step_id IS NULL
		  AND role IN ('user', 'system', 'tool')
		ORDER BY position LIMIT $4`, org, c.Key, runs, len(drafts)+1)
	if err != nil || len(rows) > len(drafts) && rows[len(drafts)].Role == User {
		return 0, err
	}
	said := min(len(rows), len(drafts))
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return 0, err
	}
	for i, d := range drafts[:said] {
		e, err := newEntry(d, redactor, time.Now(), nil)
		if err != nil {
			return 0, &DraftError{At: i, Err: err}
		}
		was := rows[i]
		if !sameText(e.SenderID, was.Sender) ||
			!bytes.Equal(digestSpelled(e.Role, e.Name, e.Content), digestSpelled(was.Role, was.Name, was.Content)) {
			return 0, nil
		}
	}
	return said, nil
}
