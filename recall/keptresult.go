package recall

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// KeptResult is a whole tool result when a caller shows its model only a part. It is in no message; Expand reads it by
// its id.
type KeptResult struct {
	ID             string    `db:"id" json:"id"`
	ConversationID string    `db:"conversation_id" json:"conversation_id"`
	Text           string    `db:"-" json:"text"`
	CreatedAt      time.Time `db:"created_at" json:"created_at"`
}

// CleanedResult returns a result cleaned and redacted, as KeepResult stores it. ErrInvalid if it is longer than a part
// of a message may be.
func (s *Store) CleanedResult(ctx context.Context, org db.Org, text string) (string, error) {
	if len(text) > MaxPartBytes {
		return "", db.Invalid("the result has %d bytes; it may have at most %d", len(text), MaxPartBytes)
	}
	r, err := s.redactor(ctx, org)
	if err != nil {
		return "", err
	}
	return r.Redact(db.Clean(text)), nil
}

// KeptID returns the id under which KeepResult stores a cleaned result. If the conversation has already kept the same
// text, that is the text's id; otherwise it is a new id.
func (s *Store) KeptID(ctx context.Context, org db.Org, c Conversation, text string) (string, error) {
	long := newLongResult("", text)
	id, err := db.One[string](ctx, s.db, `
		SELECT id FROM clips WHERE org = $1 AND conversation_key = $2 AND sha256 = $3 AND position IS NULL
		ORDER BY created_at, id LIMIT 1`, org, c.Key, long.sha256[:])
	if errors.Is(err, db.ErrNotFound) {
		return "clip-" + uuid.NewString(), nil
	}
	return id, err
}

// KeepResult stores a cleaned result under an id from KeptID. It does nothing if the result is already stored.
// ErrNotFound if the conversation was deleted.
func (s *Store) KeepResult(ctx context.Context, org db.Org, c Conversation, id, text string) error {
	return s.keep(ctx, org, KeptResult{ID: id, ConversationID: c.ID, Text: text, CreatedAt: time.Now()})
}

func (s *Store) keep(ctx context.Context, org db.Org, r KeptResult) error {
	long := newLongResult(r.ID, r.Text)
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, storeText, org, long.sha256[:], long.size, long.zstd, long.bytes); err != nil {
			return db.Error(err)
		}
		return db.Exec(ctx, tx, `
			INSERT INTO clips (id, org, sha256, agent_key, conversation_key, created_at)
			SELECT $3, org, $4, agent_key, key, $5 FROM conversations
			WHERE org = $1 AND id = $2 AND (deleted_at IS NULL OR reset_at IS NOT NULL)
			ON CONFLICT (org, id) DO UPDATE SET sha256 = clips.sha256
			WHERE clips.sha256 = EXCLUDED.sha256 AND clips.position IS NULL`, org, r.ConversationID, r.ID, long.sha256[:],
			r.CreatedAt)
	})
}

// KeptWith returns the ids of the kept results with this SHA-256.
func (s *Store) KeptWith(ctx context.Context, org db.Org, sha256 []byte) ([]string, error) {
	return db.All[string](ctx, s.db, `
		SELECT id FROM clips WHERE org = $1 AND sha256 = $2 AND position IS NULL ORDER BY id`, org, sha256)
}

// EraseFromKept erases texts from a kept result, as EraseFrom does from a message. It returns the number of erased
// occurrences.
func (s *Store) EraseFromKept(ctx context.Context, org db.Org, id string, erase func(text string) (string, int)) (
	found int, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		whole, err := s.With(tx).clipped(ctx, org, id)
		if err != nil {
			return unlessNotFound(err) // retention deleted it meanwhile
		}
		var after string
		if after, found = erase(whole); found == 0 {
			return nil
		}
		var batch pgx.Batch
		newLongResult(id, after).queueReplacement(&batch, org)
		return db.Error(tx.SendBatch(ctx, &batch).Close())
	})
	return found, err
}

// ExportKept yields the kept results of a conversation, the oldest first.
func (s *Store) ExportKept(ctx context.Context, org db.Org, c PortableConversation) iter.Seq2[KeptResult, error] {
	return func(yield func(KeptResult, error) bool) {
		all, err := db.All[KeptResult](ctx, s.db, `
			SELECT k.id, c.id AS conversation_id, k.created_at
			FROM clips k JOIN conversations c ON c.org = k.org AND c.key = k.conversation_key
			WHERE k.org = $1 AND k.conversation_key = $2 AND k.position IS NULL
			ORDER BY k.created_at, k.id`, org, c.Key)
		if err != nil {
			yield(KeptResult{}, err)
			return
		}
		for _, r := range all {
			r.Text, err = s.clipped(ctx, org, r.ID)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// RestoreKept stores a kept result of a restored conversation, cleaned and redacted as KeepResult does. ErrInvalid for
// an id or a text that no kept result can have.
func (s *Store) RestoreKept(ctx context.Context, org db.Org, r KeptResult) (err error) {
	if db.UUID("clip-", r.ID) == uuid.Nil {
		return db.Invalid("the id of a kept result is %q; it must be clip- and a UUID", db.Short(r.ID))
	}
	if r.Text, err = s.CleanedResult(ctx, org, r.Text); err != nil {
		return err
	}
	if err = s.keep(ctx, org, r); errors.Is(err, db.ErrNotFound) {
		err = db.Invalid("two results have the id %q", r.ID)
	}
	return err
}
