package recall

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// clearRows is how many rows one statement deletes.
const clearRows = 5000

// Clear deletes some of what belongs to nobody any more: the messages of agents that were deleted, and texts that no message has. It says
// how many rows; there may be more where it is not 0.
func (s *Store) Clear(ctx context.Context) (rows int, err error) {
	tag, err := s.db.Exec(ctx, `
		DELETE FROM messages WHERE key IN (
			SELECT m.key FROM forgotten_agents f JOIN messages m ON m.agent_key = f.agent_key ORDER BY m.agent_key, m.seq LIMIT $1)`, clearRows)
	if err != nil {
		return 0, fmt.Errorf("clear forgotten messages: %w", db.Error(err))
	}
	rows = int(tag.RowsAffected())
	if rows == 0 {
		if _, err := s.db.Exec(ctx, `
			DELETE FROM forgotten_agents f WHERE NOT EXISTS (SELECT FROM messages m WHERE m.agent_key = f.agent_key)`); err != nil {
			return 0, fmt.Errorf("clear forgotten agents: %w", db.Error(err))
		}
	}
	// A message that is being appended takes hold of its text first, and makes it new.
	tag, err = s.db.Exec(ctx, `
		DELETE FROM blobs b USING (
			SELECT org, sha256 FROM blobs
			WHERE used_at < now() - interval '1 hour' AND NOT EXISTS (SELECT FROM clips k WHERE k.org = blobs.org AND k.sha256 = blobs.sha256)
			LIMIT $1
		) unused
		WHERE b.org = unused.org AND b.sha256 = unused.sha256 AND b.used_at < now() - interval '1 hour'`, clearRows)
	if err != nil {
		return rows, fmt.Errorf("clear unused texts: %w", db.Error(err))
	}
	return rows + int(tag.RowsAffected()), nil
}
