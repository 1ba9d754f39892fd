package recall

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// clearRows bounds the rows that one statement deletes.
const clearRows = 5000

// Clear deletes, in every organization, one batch of messages of deleted agents and one batch of long results that no
// Clip names. It returns the number of deleted rows. There may be more to delete until it returns 0.
func (s *Store) Clear(ctx context.Context) (rows int, err error) {
	if rows, err = s.clearLogs(ctx); err != nil {
		return rows, err
	}
	// An append that reuses a stored text first sets its used_at, so that neither condition holds for the text any more.
	texts, err := s.clear(ctx, "unused texts", `
		DELETE FROM blobs b USING (
			SELECT org, sha256 FROM blobs
			WHERE used_at < now() - interval '1 hour'
			  AND NOT EXISTS (SELECT FROM clips k WHERE k.org = blobs.org AND k.sha256 = blobs.sha256)
			LIMIT $1
		) unused
		WHERE b.org = unused.org AND b.sha256 = unused.sha256 AND b.used_at < now() - interval '1 hour'`, clearRows)
	return rows + texts, err
}

// clearLogs deletes one batch of rows from the logs of deleted agents: messages first, then the other rows of their
// conversations, then the conversations, then the logs. Rows that others still refer to wait for a later call. If
// another server deletes the same batch at the same time, both return before they reach the next batch.
func (s *Store) clearLogs(ctx context.Context) (rows int, err error) {
	rows, err = s.clear(ctx, "deleted agents' messages", `
		DELETE FROM messages WHERE (org, key) IN (
			SELECT m.org, m.key FROM agent_logs l JOIN messages m ON m.org = l.org AND m.agent_key = l.key
			WHERE l.agent_key IS NULL
			ORDER BY m.org, m.agent_key, m.seq
			LIMIT $1)`, clearRows)
	for _, table := range []string{"tool_calls", "compactions"} {
		if err == nil && rows == 0 {
			rows, err = s.clear(ctx, "deleted agents' "+table, `
				DELETE FROM `+table+` WHERE ctid = ANY (ARRAY(
					SELECT t.ctid FROM agent_logs l
					JOIN conversations c ON c.org = l.org AND c.agent_key = l.key
					JOIN `+table+` t ON t.org = c.org AND t.conversation_key = c.key
					WHERE l.agent_key IS NULL
					LIMIT $1))`, clearRows)
		}
	}
	if err == nil && rows == 0 {
		rows, err = s.clear(ctx, "deleted agents' conversations", `
			DELETE FROM conversations WHERE (org, key) IN (
				SELECT c.org, c.key FROM agent_logs l JOIN conversations c ON c.org = l.org AND c.agent_key = l.key
				WHERE l.agent_key IS NULL AND NOT EXISTS (
					SELECT FROM messages m
					WHERE m.org = c.org AND m.agent_key = c.agent_key AND m.conversation_key = c.key)
				ORDER BY c.org, c.key
				LIMIT $1)`, clearRows)
	}
	if err == nil && rows == 0 {
		rows, err = s.clear(ctx, "deleted agents' logs", `DELETE FROM agent_logs WHERE (org, key) IN (
				SELECT l.org, l.key FROM agent_logs l
				WHERE l.agent_key IS NULL
				  AND NOT EXISTS (SELECT FROM conversations c WHERE c.org = l.org AND c.agent_key = l.key)
				LIMIT $1)`, clearRows)
	}
	return rows, err
}

func (s *Store) clear(ctx context.Context, what, sql string, args ...any) (rows int, err error) {
	tag, err := s.db.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("clear %s: %w", what, db.Error(err))
	}
	return int(tag.RowsAffected()), nil
}

// IndexWords indexes the words of new messages, for agents with enough new messages, and returns how many segments of
// the index it made. Several servers may call it at once.
func (s *Store) IndexWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Update(ctx, s.db)
}

// PruneWords rebuilds segments of the word index that have changed, erased or many deleted messages, and returns how
// many it rebuilt.
func (s *Store) PruneWords(ctx context.Context) (segments int, err error) {
	return s.search.Words.Prune(ctx, s.db)
}
