package recall

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Unconfirmed names messages that a request may have stored without telling their sender: by their ids, or by the run
// that began with them.
type Unconfirmed struct {
	IDs   []string
	RunID string
}

// KeepUnconfirmed records messages that a request may have stored, if they are the newest ones of a conversation. If
// their sender sends them again without otids, they are not stored twice. It does not wait for a standby.
func (s *Store) KeepUnconfirmed(ctx context.Context, org db.Org, c Conversation, u Unconfirmed) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = local`); err != nil {
			return db.Error(err)
		}
		_, err := s.With(tx).lockEnd(ctx, org, c.AgentID, c.ID) // waits until the request's own transaction has ended
		if err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(u.IDs))
		for i, id := range u.IDs {
			ids[i] = uuidOf(id)
		}
		_, err = tx.Exec(ctx, `
			UPDATE conversations SET refusal = coalesce(refusal, '{"at":0}') || jsonb_build_object('untold', stored.positions)
			FROM (
				SELECT jsonb_agg(position ORDER BY position) AS positions, max(position) AS last FROM messages
				WHERE org = $1 AND conversation_key = $2 AND step_id IS NULL AND (id = ANY ($3) OR run_id = $4)
			) AS stored
			WHERE org = $1 AND key = $2 AND stored.last > 0 AND NOT EXISTS (
				SELECT FROM messages m
				WHERE m.org = $1 AND m.conversation_key = $2 AND m.position > stored.last AND m.step_id IS NULL
				  AND m.role IN ('user', 'assistant'))`, org, c.Key, ids, u.RunID)
		return db.Error(err)
	})
}

// Told records that the sender of a conversation's newest messages knows that they are stored.
func (s *Store) Told(ctx context.Context, org db.Org, conversation int64) error {
	_, err := s.db.Exec(ctx, `
		UPDATE conversations SET refusal = refusal - 'untold' WHERE org = $1 AND key = $2 AND refusal ? 'untold'`,
		org, conversation)
	return db.Error(err)
}

// readUntold reads the stored messages that the drafts may repeat.
func (a *appending) readUntold(ctx context.Context) (err error) {
	if a.restores || a.end.Refusal == nil || len(a.end.Refusal.Unconfirmed) == 0 {
		return nil
	}
	a.unconfirmed, err = db.All[told](ctx, a.db, `
		SELECT 'message-' || id AS id, seq, position, tokens, otid, role, name, sender_id, content FROM messages
		WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)
		ORDER BY position`, a.org, a.end.Key, a.end.Refusal.Unconfirmed)
	return err
}

// dropUntold finds entries, from the first draft on, that repeat messages their sender was not told of. It sets their
// results to the stored places, and returns the other entries. Once a client sends other messages, later drafts no
// longer count as repetitions.
func (a *appending) dropUntold(ctx context.Context, fresh []*entry) ([]*entry, error) {
	if a.restores || a.end.Refusal == nil || len(a.end.Refusal.Unconfirmed) == 0 && len(a.unconfirmed) == 0 {
		return fresh, nil
	}
	n := 0
	for n < len(fresh) && len(a.unconfirmed) > 0 && a.unconfirmed[0].isSaidBy(fresh[n]) {
		m := a.unconfirmed[0]
		a.out[fresh[n].at] = Appended{ID: m.ID, Seq: m.Seq, Position: m.Position, Tokens: m.Tokens, OTID: m.OTID,
			Repeated: true, Orphans: orphansOf(m.Content)}
		a.unconfirmed, n = a.unconfirmed[1:], n+1
	}
	if n < len(fresh) {
		a.unconfirmed = nil
	}
	if n == 0 && !slices.ContainsFunc(fresh, (*entry).isClients) {
		return fresh, nil
	}
	a.end.Refusal.Unconfirmed = nil
	return fresh[n:], a.Told(ctx, a.org, a.end.Key)
}

func (t told) isSaidBy(e *entry) bool {
	return e.OTID == nil && e.StepID == nil && e.Role == t.Role && sameText(e.SenderID, t.Sender) &&
		bytes.Equal(digestSpelled(e.Role, e.Name, likeStored(e.Content, t.Content)),
			digestSpelled(t.Role, t.Name, t.Content))
}

// isClients reports whether a client sent the message, rather than a run.
func (e *entry) isClients() bool { return e.StepID == nil && (e.Role == User || e.Role == Assistant) }
