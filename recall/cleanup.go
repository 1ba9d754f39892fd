package recall

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// clearRows bounds the rows that one statement deletes.
const clearRows = 5000

// Clear deletes, in every organization, one batch of the messages of deleted agents and one of the long results that no
// Clip names. It returns the number of rows deleted; while that is not 0, there may be more.
func (s *Store) Clear(ctx context.Context) (rows int, err error) {
	messages, err := s.clear(ctx, "forgotten messages", `
		DELETE FROM messages WHERE (org, key) IN (
			SELECT m.org, m.key FROM forgotten_agents f JOIN messages m ON m.org = f.org AND m.agent_key = f.agent_key
			ORDER BY m.org, m.agent_key, m.seq
			LIMIT $1)`, clearRows)
	if err == nil && messages == 0 {
		_, err = s.clear(ctx, "forgotten agents", `
			DELETE FROM forgotten_agents f
			WHERE NOT EXISTS (SELECT FROM messages m WHERE m.org = f.org AND m.agent_key = f.agent_key)`)
	}
	if err != nil {
		return messages, err
	}
	// An append that uses a stored text again sets its used_at first, which takes it out of both conditions.
	texts, err := s.clear(ctx, "unused texts", `
		DELETE FROM blobs b USING (
			SELECT org, sha256 FROM blobs
			WHERE used_at < now() - interval '1 hour'
			  AND NOT EXISTS (SELECT FROM clips k WHERE k.org = blobs.org AND k.sha256 = blobs.sha256)
			LIMIT $1
		) unused
		WHERE b.org = unused.org AND b.sha256 = unused.sha256 AND b.used_at < now() - interval '1 hour'`, clearRows)
	return messages + texts, err
}

func (s *Store) clear(ctx context.Context, what, sql string, args ...any) (rows int, err error) {
	tag, err := s.db.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("clear %s: %w", what, db.Error(err))
	}
	return int(tag.RowsAffected()), nil
}
