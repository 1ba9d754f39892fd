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
	err = db.EachOrg(ctx, s.db, func(org db.Org) error {
		cleared, err := s.clearLogs(ctx, org)
		rows += cleared
		return err
	}, `SELECT DISTINCT org FROM agent_logs WHERE agent_key IS NULL`)
	if err != nil {
		return rows, err
	}
	// An append that reuses a stored text first sets its used_at, so that neither condition holds for the text any more.
	err = db.EachOrg(ctx, s.db, func(org db.Org) error {
		texts, err := s.clearTable(ctx, org, "unused texts", "blobs", `r.used_at < now() - interval '1 hour' AND r.sha256 IN (
			SELECT b.sha256 FROM blobs b
			WHERE b.org = $1 AND b.used_at < now() - interval '1 hour'
			  AND NOT EXISTS (SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = b.sha256)
			LIMIT $2)`)
		rows += texts
		return err
	}, `
		SELECT DISTINCT b.org FROM blobs b
		WHERE used_at < now() - interval '1 hour'
		  AND NOT EXISTS (SELECT FROM clips k WHERE k.org = b.org AND k.sha256 = b.sha256)`)
	return rows, err
}

// clearLogs deletes one batch of rows from the logs of an organization's deleted agents: messages first, then the other
// rows of their conversations, then the conversations, then the logs. Rows that others still refer to wait for a later
// call. If another server deletes the same batch at the same time, both return before they reach the next batch.
func (s *Store) clearLogs(ctx context.Context, org db.Org) (rows int, err error) {
	rows, err = s.clearTable(ctx, org, "deleted agents' messages", "messages", `r.key IN (
		SELECT m.key FROM agent_logs l JOIN messages m ON m.org = l.org AND m.agent_key = l.key
		WHERE l.org = $1 AND l.agent_key IS NULL
		ORDER BY m.agent_key, m.seq
		LIMIT $2)`)
	for _, table := range []string{"tool_calls", "compactions"} {
		if err == nil && rows == 0 {
			rows, err = s.clear(ctx, "deleted agents' "+table, `
				DELETE FROM `+table+` WHERE org = $1 AND ctid = ANY (ARRAY(
					SELECT t.ctid FROM agent_logs l
					JOIN conversations c ON c.org = l.org AND c.agent_key = l.key
					JOIN `+table+` t ON t.org = c.org AND t.conversation_key = c.key
					WHERE l.org = $1 AND l.agent_key IS NULL
					LIMIT $2))`, org, clearRows)
		}
	}
	if err == nil && rows == 0 {
		rows, err = s.unlinkConversations(ctx, org)
	}
	if err == nil && rows == 0 {
		rows, err = s.clearTable(ctx, org, "deleted agents' conversations", "conversations", `r.key IN (
			SELECT c.key FROM agent_logs l JOIN conversations c ON c.org = l.org AND c.agent_key = l.key
			WHERE l.org = $1 AND l.agent_key IS NULL AND NOT EXISTS (
				SELECT FROM messages m
				WHERE m.org = $1 AND m.agent_key = c.agent_key AND m.conversation_key = c.key)
			ORDER BY c.key
			LIMIT $2)`)
	}
	if err == nil && rows == 0 {
		rows, err = s.clear(ctx, "deleted agents' logs", `DELETE FROM agent_logs WHERE org = $1 AND key IN (
				SELECT l.key FROM agent_logs l
				WHERE l.org = $1 AND l.agent_key IS NULL
				  AND NOT EXISTS (SELECT FROM conversations c WHERE c.org = $1 AND c.agent_key = l.key)
				LIMIT $2)`, org, clearRows)
	}
	return rows, err
}

// unlinkConversations makes one batch of rows no longer refer to the conversations of an organization's deleted agents.
func (s *Store) unlinkConversations(ctx context.Context, org db.Org) (rows int, err error) {
	for _, link := range []struct{ table, column, nulls string }{
		{"conversations", "forked_from", "forked_from = NULL"},
		{"handovers", "taken_by", "taken_by = NULL"},
		{"children", "conversation_key", "agent_key = NULL, conversation_key = NULL"},
	} {
		if err == nil && rows == 0 {
			rows, err = s.clear(ctx, "what refers to deleted agents' conversations", `
				UPDATE `+link.table+` SET `+link.nulls+` WHERE org = $1 AND key IN (
					SELECT r.key FROM agent_logs l JOIN `+link.table+` r ON r.org = l.org AND r.agent_key = l.key
					WHERE l.org = $1 AND l.agent_key IS NULL AND r.`+link.column+` IS NOT NULL
					LIMIT $2)`, org, clearRows)
		}
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

// clearTable deletes at most clearRows rows of an organization's table for which a condition holds, which names the
// organization $1 and the limit $2.
func (s *Store) clearTable(ctx context.Context, org db.Org, what, table, condition string) (int, error) {
	gone, err := db.One[db.Deleted](ctx, s.db, db.Deleting("", table, `r.org = $1 AND `+condition), org, clearRows)
	if err != nil {
		err = fmt.Errorf("clear %s: %w", what, err)
	}
	return gone.Rows, err
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
