package erase

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// tokensPage limits the tokens of a page of messages. Only its last message may exceed the limit.
const tokensPage = 1_000_000

// messages erases in the log, including deleted conversations, and in the long results that are stored outside it.
func (w *sweep) messages(ctx context.Context) error {
	if err := w.blobs(ctx); err != nil {
		return err
	}
	type row struct {
		Key     int64  `db:"key"`
		Role    string `db:"role"`
		Content string `db:"content"`
		Fields  string `db:"fields"`
		// the message's texts together, if there are several, because an occurrence may span two of them
		Joined string `db:"joined"`
	}
	for after := int64(0); ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT key, role, content::text AS content, concat_ws(E'\n', name, sender_id, group_id, otid,
			           step_id, run_id, model, refused ->> 'message') AS fields,
			       coalesce(CASE WHEN json_array_length(content) > 1 THEN (
			           SELECT string_agg(part ->> 'text', '') || E'\n' || string_agg(part ->> 'text', E'\n')
			           FROM json_array_elements(content) part WHERE part ->> 'type' = 'text') END, '') AS joined
			FROM messages JOIN (
			    SELECT key, sum(tokens) OVER (ORDER BY key) - tokens AS before FROM (
			        SELECT key, tokens FROM messages WHERE org = $1 AND key > $2 ORDER BY key LIMIT $3
			    ) next
			) page USING (key)
			WHERE org = $1 AND before < $4
			ORDER BY key`, w.org, after, keysPage, tokensPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.Key
			m := w.m
			if r.Role == string(recall.System) && w.quotes != nil { // a system message shows working memory
				m = w.quotes
			}
			if !m.in(r.Fields) && !m.in(r.Content) && !m.in(r.Joined) || w.dry && slices.Contains(w.whole, r.Key) {
				continue
			}
			w.leave("messages.content", m.eraseJSON(r.Content, ownNames).kept)
			if err := w.inMessage(ctx, r.Key, m); err != nil {
				return err
			}
		}
	}
}

// inMessage erases in one message, and records it, so that whatever was made from it is made again.
func (w *sweep) inMessage(ctx context.Context, key int64, find *matcher) error {
	return db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		m, err := w.Recall.With(tx).EraseFrom(ctx, w.org, key, find.eraser(w.dry))
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err != nil || m.Found == 0 {
			return err
		}
		if w.count("messages", m.Found); w.dry {
			return nil
		}
		return w.note(ctx, tx, m)
	})
}

// eraser returns the functions with which recall erases in a message.
func (m *matcher) eraser(dry bool) recall.Eraser {
	return recall.Eraser{Text: m.eraseAny, Across: m.eraseAcross, Dry: dry, JSON: func(raw string) (string, int) {
		after := m.eraseJSON(raw, ownNames)
		return after.text, after.n
	}}
}

// note records that an erasure changed a message.
func (w *sweep) note(ctx context.Context, tx pgx.Tx, m recall.ErasedMessage) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO erased_messages (org, erasure_key, message_key, conversation_key, agent_key, position, seq)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (org, erasure_key, message_key) DO UPDATE SET remade = false`,
		w.org, w.e.Key, m.Key, m.Conversation, m.Agent, m.Position, m.Seq)
	return db.Error(err)
}

// blobs erases in the long results outside the log. Results that messages refer to are erased together with the
// messages, others at once.
func (w *sweep) blobs(ctx context.Context) error {
	type row struct {
		SHA256 []byte `db:"sha256"`
		ZSTD   bool   `db:"zstd"`
		Bytes  []byte `db:"bytes"`
	}
	for after := []byte{}; ; {
		page, err := db.All[row](ctx, w.DB, `
			SELECT sha256, zstd, bytes FROM blobs WHERE org = $1 AND sha256 > $2 ORDER BY sha256 LIMIT 20`, w.org, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.SHA256
			text, err := recall.Unpacked(r.Bytes, r.ZSTD)
			if err != nil {
				return err
			}
			if n := len(w.m.find(text)); n > 0 {
				if err := w.inBlob(ctx, r.SHA256, n); err != nil {
					return err
				}
			}
		}
	}
}

func (w *sweep) inBlob(ctx context.Context, sum []byte, n int) error {
	messages, err := db.All[int64](ctx, w.DB, `
		SELECT m.key FROM clips k
		JOIN messages m ON m.org = k.org AND m.conversation_key = k.conversation_key AND m.position = k.position
		WHERE k.org = $1 AND m.org = $1 AND k.sha256 = $2
		ORDER BY m.key`, w.org, sum)
	if err != nil {
		return err
	}
	if w.dry {
		w.count("blobs", n)
		return nil
	}
	for _, key := range messages {
		if err := w.inMessage(ctx, key, w.m); err != nil {
			return err
		}
	}
	keptIDs, err := w.Recall.KeptWith(ctx, w.org, sum)
	if err != nil {
		return err
	}
	for _, id := range keptIDs {
		n, err := w.Recall.EraseFromKept(ctx, w.org, id, w.m.eraseAny)
		if err != nil {
			return err
		}
		w.count("blobs", n)
	}
	gone, err := db.Delete(ctx, w.DB, "blobs", `r.sha256 = $2 AND NOT EXISTS (
			SELECT FROM clips k WHERE k.org = $1 AND k.sha256 = $2)`, w.org, sum)
	w.count("blobs", gone)
	return err
}
