package recall

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// outdatedMessage is a message with words that an older version of Loci weighed.
type outdatedMessage struct {
	Key     int64   `db:"key"`
	Agent   int64   `db:"agent_key"`
	Role    Role    `db:"role"`
	Name    *string `db:"name"`
	Content []Part  `db:"content"`
}

// ReweighWords weighs the words of messages again if an older version of Loci weighed them. It returns the number of
// messages.
func (s *Store) ReweighWords(ctx context.Context) (rows int, err error) {
	return rank.EachOrgBatch(ctx, s.db, func(ctx context.Context, tx pgx.Tx, org db.Org) (int, error) {
		list, err := db.All[outdatedMessage](ctx, tx, fmt.Sprintf(`
			SELECT key, agent_key, role, name, content FROM messages
			WHERE org = $1 AND lex IS NOT NULL AND lex_version < %d
			ORDER BY key LIMIT %d
			FOR NO KEY UPDATE SKIP LOCKED`, rank.LexVersion, rank.ReweighRows), org)
		if err != nil || len(list) == 0 {
			return 0, err
		}
		return len(list), s.With(tx).storeWords(ctx, org, list)
	})
}

// storeWords weighs the words of messages and stores the weights.
func (s *Store) storeWords(ctx context.Context, org db.Org, list []outdatedMessage) error {
	keys := make([]int64, len(list))
	var batch pgx.Batch
	for i, m := range list {
		keys[i] = m.Key
		whole, err := s.wholeParts(ctx, org, m.Content, nil)
		if err != nil {
			return err
		}
		weights, passages := weigh(m.Agent, &entry{searchText: searchText(m.Role, m.Name, whole)})
		batch.Queue(`UPDATE messages SET lex = $3, terms = $4, lex_version = $5 WHERE org = $1 AND key = $2`,
			org, m.Key, weights.lex, weights.terms, rank.LexVersion)
		queuePassages(&batch, org, m.Key, passages)
	}
	if err := s.search.Words.Note(ctx, s.db, org, keys...); err != nil {
		return err
	}
	return db.Error(s.db.SendBatch(ctx, &batch).Close())
}

// queuePassages queues the statements that replace a message's passages.
func queuePassages(batch *pgx.Batch, org db.Org, message int64, passages []passage) {
	batch.Queue(`DELETE FROM message_pieces WHERE org = $1 AND message_key = $2`, org, message)
	for _, p := range passages {
		batch.Queue(`
			INSERT INTO message_pieces (org, message_key, agent_key, conversation_key, role, created_at, lex, terms, at)
			SELECT org, key, agent_key, conversation_key, role, created_at, $3, $4, $5
			FROM messages WHERE org = $1 AND key = $2`, org, message, p.lex, p.terms, p.at)
	}
}
