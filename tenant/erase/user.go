package erase

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
)

// What the erasure of a user's memory does not reach.
const nobodysRemain = "What belongs to nobody, or to another user, may still quote the user: blocks that were given " +
	"to the identity, shared memories, sub-agents' own memories, replays of the lab. Look for the user's words with " +
	"POST /v1/erasures/preview. The identity itself stays, with its name and properties: DELETE /v1/identities/{id} " +
	"deletes it. Keys that are bound to it go on."

// OfUser records the erasure of everything that is a user's own, and begins it. user is the identity's id. ErrNotFound
// if there is no such identity.
func (s *Store) OfUser(ctx context.Context, org db.Org, user, reason string, by Requester) (Erasure, error) {
	if _, err := s.userKey(ctx, org, user); err != nil {
		return Erasure{}, err
	}
	return s.record(ctx, org, Request{User: user, Reason: reason, By: by})
}

func (s *Store) userKey(ctx context.Context, org db.Org, id string) (int64, error) {
	key, err := db.One[int64](ctx, s.DB, `SELECT key FROM identities WHERE org = $1 AND id = $2`, org, id)
	return key, db.OrNotFound(err, "Identity with ID %s not found", db.Short(id))
}

// userPass erases everything that is a user's own. It returns how many messages and rows it erased.
func (w *sweep) userPass(ctx context.Context) (int, error) {
	w.found = 0
	user, err := w.userKey(ctx, w.org, *w.e.UserID)
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	conversations, err := w.conversationsOf(ctx, user)
	for _, c := range conversations {
		if err == nil {
			err = w.conversation(ctx, c)
		}
	}
	if err != nil {
		return 0, err
	}
	for _, memory := range []struct {
		table   string
		deletes func(ctx context.Context, org db.Org, user int64) (rows int, err error)
	}{{"passages", w.Archival.DeleteOfUser}, {"blocks", (&block.Store{DB: w.DB}).DeleteOfUser},
		{"memory_trees", w.MemoryFiles.DeleteOfUser}, {"files", w.Files.DeleteOfUser}} {
		n, err := memory.deletes(ctx, w.org, user)
		if w.count(memory.table, n); err != nil {
			return 0, err
		}
	}
	return w.found, nil
}

// userConversation is a conversation with a user, or one of a sub-agent that works for it.
type userConversation struct {
	Key     int64  `db:"key"`
	ID      string `db:"id"`
	Agent   int64  `db:"agent_key"`
	Default bool   `db:"is_default"`
	Hidden  bool   `db:"hidden"`
}

// conversationsOf returns the conversations with a user, including deleted ones, and those of their sub-agents.
func (w *sweep) conversationsOf(ctx context.Context, user int64) ([]userConversation, error) {
	return db.All[userConversation](ctx, w.DB, `
		WITH RECURSIVE own AS (
			SELECT agent_key, conversation_key AS key FROM conversation_identities WHERE org = $1 AND identity_key = $2
			UNION
			SELECT h.agent_key, h.conversation_key FROM own JOIN children h ON h.org = $1 AND h.parent_key = own.agent_key
			 AND h.parent_conversation = own.key AND h.conversation_key IS NOT NULL
		)
		SELECT c.key, c.id, c.agent_key, c.is_default, c.deleted_at IS NOT NULL AS hidden
		FROM own JOIN conversations c ON c.org = $1 AND c.key = own.key
		ORDER BY c.key`, w.org, user)
}

// conversation erases each message of a conversation and whatever was made from them, and hides the conversation. Its
// places in the log stay.
func (w *sweep) conversation(ctx context.Context, c userConversation) error {
	if !c.Hidden && !c.Default {
		if err := w.Recall.DeleteConversation(ctx, w.org, c.ID); err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
	}
	for after := int64(0); ; {
		keys, err := db.All[int64](ctx, w.DB, `
			SELECT key FROM messages WHERE org = $1 AND conversation_key = $2 AND key > $3 ORDER BY key LIMIT $4`,
			w.org, c.Key, after, keysPage)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			if err := db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
				m, err := w.Recall.With(tx).EraseMessage(ctx, w.org, key)
				w.count("messages", m.Found)
				return err
			}); err != nil {
				return err
			}
			after = key
		}
	}
	return db.Tx(ctx, w.DB, func(tx pgx.Tx) error { return w.madeOf(ctx, tx, c) })
}

// madeOfConversation lists the tables with rows that were made from a conversation's messages. What belongs to such a
// row is deleted with it.
var madeOfConversation = []string{"prompts", "compactions", "working_memories", "handovers", "flushes", "runs"}

// madeOf deletes what was made from the messages of a conversation.
func (w *sweep) madeOf(ctx context.Context, tx pgx.Tx, c userConversation) error {
	for _, table := range madeOfConversation {
		if table == "compactions" && c.Default { // its view needs them
			continue
		}
		tag, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE org = $1 AND conversation_key = $2`, w.org, c.Key)
		if err != nil {
			return db.Error(err)
		}
		w.count(table, int(tag.RowsAffected()))
		if table == "prompts" {
			w.report.Prompts += int(tag.RowsAffected())
		}
	}
	for _, sql := range []string{`
		DELETE FROM children WHERE org = $1 AND parent_conversation = $2`, `
		UPDATE conversations
		SET summary = NULL, description = NULL, refusal = NULL, clipped = '[]', embed_error = NULL
		WHERE org = $1 AND key = $2`, `
		UPDATE messages SET sender_id = NULL, group_id = NULL
		WHERE org = $1 AND conversation_key = $2 AND (sender_id IS NOT NULL OR group_id IS NOT NULL)`, `
		DELETE FROM prompt_parts part USING conversations c
		WHERE part.org = $1 AND c.org = $1 AND c.key = $2 AND part.agent_key = c.agent_key AND NOT EXISTS (
			SELECT FROM prompts p WHERE p.org = $1 AND p.agent_key = part.agent_key AND p.parts @> ARRAY[part.sha256])`} {
		if _, err := tx.Exec(ctx, sql, w.org, c.Key); err != nil {
			return db.Error(err)
		}
	}
	gone, err := db.One[db.Deleted](ctx, tx, db.Deleting(`
		cut AS (DELETE FROM clips WHERE org = $1 AND conversation_key = $2 RETURNING id, sha256), `,
		"blobs", `r.org = $1 AND r.sha256 IN (SELECT sha256 FROM cut) AND NOT EXISTS (
			SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = r.sha256 AND k.id NOT IN (SELECT id FROM cut))`),
		w.org, c.Key)
	w.count("blobs", gone.Rows)
	return err
}

// unlink makes the erased conversations nobody's: they are hidden from every read, and the user may be deleted. Until
// then they are found again by an erasure that goes on after a stop.
func (w *sweep) unlink(ctx context.Context) error {
	_, err := w.DB.Exec(ctx, `
		DELETE FROM conversation_identities x USING identities i, conversations c
		WHERE x.org = $1 AND i.org = $1 AND c.org = $1 AND i.id = $2 AND x.identity_key = i.key
		  AND c.key = x.conversation_key AND c.deleted_at IS NOT NULL`, w.org, *w.e.UserID)
	return db.Error(err)
}
