package recall

import (
	"bytes"
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

// CountRepeated compares drafts with the messages with which these runs began. It returns how many of the first drafts
// repeat all of these messages, in the same order and from the same senders; 0 if a message is not repeated. A run that
// began with more messages than there are drafts is accepted only if the next of its messages is not from a user.
func (s *Store) CountRepeated(ctx context.Context, org db.Org, c Conversation, runs []string, drafts []Draft) (
	int, error) {
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
	repeated := min(len(rows), len(drafts))
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return 0, err
	}
	for i, d := range drafts[:repeated] {
		e, err := newEntry(d, redactor, surroundings{now: time.Now()})
		if err != nil {
			return 0, &DraftError{At: i, Err: err}
		}
		stored := rows[i]
		if !sameText(e.SenderID, stored.Sender) ||
			!bytes.Equal(digestSpelled(e.Role, e.Name, likeStored(e.Content, stored.Content)),
				digestSpelled(stored.Role, stored.Name, stored.Content)) {
			return 0, nil
		}
	}
	return repeated, nil
}
