package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Appended is what became of a message that was to be appended.
type Appended struct {
	ID       string  `db:"id" json:"id"`
	Seq      int64   `db:"seq" json:"seq"`
	Position int     `db:"position" json:"position"`
	Tokens   int     `db:"tokens" json:"tokens"`
	OTID     *string `db:"otid" json:"otid"`
	Repeated bool    `db:"-" json:"repeated"` // it was there already, by its otid
}

// DraftError is what is wrong with one of the messages that were to be appended. It wraps ErrInvalid or ErrConflict.
type DraftError struct {
	At  int // its place among them, from 0
	Err error
}

// Error implements error.
func (e *DraftError) Error() string { return fmt.Sprintf("messages[%d]: %v", e.At, e.Err) }

// Unwrap is for errors.Is.
func (e *DraftError) Unwrap() error { return e.Err }

// Append adds messages to a conversation of an agent, all or none, in their order; it returns them in that order. Secrets of certain shape
// are redacted and long results of tools put aside before anything is stored. A message whose otid the agent has already is not stored
// again: its first is returned. ErrNotFound if the agent or the conversation is not there; ErrInvalid if a message breaks a rule;
// ErrConflict if an otid stands for another message. Both of these are a DraftError where one message is to blame.
func (s *Store) Append(ctx context.Context, org db.Org, agentID, conversation string, messages []Draft) ([]Appended, error) {
	appended, _, err := s.AppendTo(ctx, org, agentID, conversation, messages)
	return appended, err
}

// AppendTo is Append, and returns the conversation too, as it is with the messages.
func (s *Store) AppendTo(ctx context.Context, org db.Org, agentID, conversation string, messages []Draft) ([]Appended, Conversation, error) {
	var c Conversation
	if len(messages) == 0 || len(messages) > MaxMessages {
		return nil, c, db.Invalid("%d messages are to be appended; it must be from 1 to %d", len(messages), MaxMessages)
	}
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return nil, c, err
	}
	now := time.Now()
	ready := make([]prepared, len(messages))
	for i, n := range messages {
		if ready[i], err = prepare(n, redactor, now); err != nil {
			return nil, c, &DraftError{At: i, Err: err}
		}
	}
	for attempt := 1; ; attempt++ {
		var appended []Appended
		err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
			var err error
			appended, c, err = s.With(tx).append(ctx, org, agentID, conversation, ready)
			return err
		})
		if attempt < appendAttempts && (raced(err) || isNotFound(err) && s.isBegun(ctx, org, agentID, conversation)) {
			continue // the same otid was stored, or the conversation begun anew, since this one looked
		}
		return appended, c, err
	}
}

// appendAttempts is how often an append is tried that other requests came before.
const appendAttempts = 10

// raced tells that a message was stored by another transaction since this one looked.
func raced(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.ConstraintName == "messages_otid_key"
}

// isBegun tells whether an agent has the default conversation that was asked for: a new one takes the place of one that is put away.
func (s *Store) isBegun(ctx context.Context, org db.Org, agentID, conversation string) bool {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	return err == nil && c.IsDefault
}

// head is the end of a conversation, locked.
type head struct {
	Conversation
	Session   int        `db:"session"`
	SessionAt *time.Time `db:"session_at"`
}

func (s *Store) append(ctx context.Context, org db.Org, agentID, conversation string, messages []prepared) ([]Appended, Conversation, error) {
	h, err := db.One[head](ctx, s.db, `
		SELECT `+conversationColumns+`, c.session, c.session_at`+ofOrg+` AND a.org = @org AND `+chosen+`
		FOR UPDATE OF c`, pgx.StrictNamedArgs{"org": org, "agent": agentID, "conversation": conversation})
	if err != nil {
		return nil, h.Conversation, conversationError(err, agentID, conversation)
	}
	out, fresh, err := s.known(ctx, h.AgentKey, messages)
	if err != nil || len(fresh) == 0 {
		return out, h.Conversation, err
	}
	calls, err := s.pair(ctx, h, messages, fresh)
	if err != nil {
		return nil, h.Conversation, err
	}
	events := make([]event.Event, len(fresh))
	for i, at := range fresh {
		events[i] = event.Event{AgentID: agentID, Type: event.MessageAppended, RefID: "message-" + messages[at].id.String()}
	}
	if events, err = event.Append(ctx, s.db.(pgx.Tx), org, events...); err != nil {
		return nil, h.Conversation, err
	}
	var batch pgx.Batch
	for i, at := range fresh {
		m := &messages[at]
		h.Messages++
		h.extend(*m.CreatedAt)
		if err := queueMessage(&batch, org, h, m, events[i].Seq); err != nil {
			return nil, h.Conversation, err
		}
		out[at] = Appended{ID: events[i].RefID, Seq: events[i].Seq, Position: h.Messages, Tokens: m.tokens, OTID: m.OTID}
	}
	calls.queue(&batch, h.Key)
	h.queue(&batch, messages, fresh)
	return out, h.Conversation, db.Error(s.db.SendBatch(ctx, &batch).Close())
}

// known finds the messages that the agent has already by their otids; fresh are the places of the others.
func (s *Store) known(ctx context.Context, agent int64, messages []prepared) (out []Appended, fresh []int, err error) {
	type row struct {
		Appended
		Sum []byte `db:"otid_sha256"`
	}
	out = make([]Appended, len(messages))
	first := map[string]*prepared{}
	var otids []string
	for i := range messages {
		m := &messages[i]
		if m.OTID == nil {
			continue
		}
		if first[*m.OTID] != nil {
			return nil, nil, &DraftError{At: i, Err: db.Invalid("the otid %q stands for two messages of the request", short(*m.OTID))}
		}
		first[*m.OTID] = m
		otids = append(otids, *m.OTID)
	}
	stored := map[string]row{}
	if len(otids) > 0 {
		rows, err := db.All[row](ctx, s.db, `
			SELECT 'message-' || id AS id, seq, position, tokens, otid, otid_sha256
			FROM messages WHERE agent_key = $1 AND otid = ANY ($2)`, agent, otids)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			stored[*r.OTID] = r
		}
	}
	for i := range messages {
		m := &messages[i]
		if m.OTID == nil {
			fresh = append(fresh, i)
			continue
		}
		r, ok := stored[*m.OTID]
		if !ok {
			fresh = append(fresh, i)
			continue
		}
		if !bytes.Equal(r.Sum, m.digest) {
			return nil, nil, &DraftError{At: i, Err: db.Conflict(
				"the otid %q is that of %s, which says something else; a new message needs an otid of its own", short(*m.OTID), r.ID)}
		}
		out[i] = r.Appended
		out[i].Repeated = true
	}
	return out, fresh, nil
}

// A session is what stands together in time, at most so much of it.
const (
	sessionGap      = time.Hour
	sessionMessages = 200
)

// extend makes a message of the given time, whose place is counted already, part of the session, or the first of a new one.
func (h *head) extend(at time.Time) {
	if h.SessionAt == nil || at.Sub(*h.SessionAt).Abs() > sessionGap || h.Messages-h.Session >= sessionMessages {
		h.Session = h.Messages
	}
	h.SessionAt = &at
}

func queueMessage(batch *pgx.Batch, org db.Org, h head, m *prepared, seq int64) error {
	for _, b := range m.blobs {
		batch.Queue(`
			INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org, sha256) DO UPDATE SET used_at = now()`, org, b.sha256[:], b.size, b.zstd, b.bytes)
		batch.Queue(`
			INSERT INTO clips (id, org, sha256, agent_key, conversation_key, position, part) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			b.clip, org, b.sha256[:], h.AgentKey, h.Key, h.Messages, b.part)
	}
	content, err := json.Marshal(m.Content)
	if err != nil {
		return err
	}
	lex, terms := weigh(h.AgentKey, m)
	batch.Queue(`
		INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, name, content, otid, otid_sha256, step_id,
		                      run_id, sender_id, group_id, model, is_err, tokens, created_at, lex, terms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`,
		m.id, org, h.AgentKey, seq, h.Key, h.Messages, h.Session, m.Role, m.Name, content, m.OTID, m.digest, m.StepID,
		m.RunID, m.SenderID, m.GroupID, m.Model, m.IsErr, m.tokens, m.CreatedAt, lex, terms)
	return nil
}

// queue writes the conversation's new end.
func (h *head) queue(batch *pgx.Batch, messages []prepared, fresh []int) {
	tokens := 0
	last := *messages[fresh[0]].CreatedAt
	for _, at := range fresh {
		tokens += messages[at].tokens
		if messages[at].CreatedAt.After(last) {
			last = *messages[at].CreatedAt
		}
	}
	h.Tokens += int64(tokens)
	if h.LastMessageAt == nil || last.After(*h.LastMessageAt) {
		h.LastMessageAt = &last
	}
	batch.Queue(`
		UPDATE conversations
		SET messages = $2, tokens = tokens + $3, session = $4, session_at = $5, last_message_at = greatest(last_message_at, $6),
		    unembedded = true
		WHERE key = $1`, h.Key, h.Messages, tokens, h.Session, h.SessionAt, last)
}
