package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Appended is where a draft stands in the log.
type Appended struct {
	ID       string  `db:"id" json:"id"`
	Seq      int64   `db:"seq" json:"seq"`
	Position int     `db:"position" json:"position"`
	Tokens   int     `db:"tokens" json:"tokens"`
	OTID     *string `db:"otid" json:"otid"`
	Repeated bool    `db:"-" json:"repeated"` // an earlier append stored it under the same otid

	// Orphans are the ids of calls that the conversation lacks, and the message has results of. No prompt has such a
	// result; searches and lists find it.
	Orphans []string `db:"orphans" json:"orphan_tool_call_ids" doc:"Of results that no model sees, as they have no call."`
}

// DraftError says what is wrong with one of the drafts of a call. It wraps ErrInvalid or ErrConflict.
type DraftError struct {
	At  int // index of the draft, from 0
	Err error
}

// Error implements error.
func (e *DraftError) Error() string { return fmt.Sprintf("messages[%d]: %v", e.At, e.Err) }

// Unwrap returns what is wrong.
func (e *DraftError) Unwrap() error { return e.Err }

// Append appends messages to a conversation of an agent, all or none, and returns where each stands, in their order. It
// redacts secrets and moves long tool results out of the log before it stores anything. A draft whose otid the agent's
// log has already is not stored again; Append returns where the first one stands. It returns ErrNotFound if the agent
// or the conversation does not exist, and a DraftError that wraps ErrInvalid if a draft breaks a rule, or ErrConflict
// if its otid belongs to another message.
func (s *Store) Append(ctx context.Context, org db.Org, agentID, conversation string,
	drafts []Draft) ([]Appended, error) {
	appended, _, err := s.AppendTo(ctx, org, agentID, conversation, drafts)
	return appended, err
}

// maxAttempts bounds how often an append is tried when other requests keep changing what it read.
const maxAttempts = 10

// AppendTo does what Append does, and also returns the conversation with the messages appended.
func (s *Store) AppendTo(ctx context.Context, org db.Org, agentID, conversation string,
	drafts []Draft) (appended []Appended, c Conversation, err error) {
	entries, err := s.entries(ctx, org, drafts)
	if err != nil {
		return nil, c, err
	}
	for range maxAttempts {
		err = db.Tx(ctx, s.db, func(tx pgx.Tx) (err error) {
			appended, c, err = s.With(tx).appendEntries(ctx, org, agentID, conversation, entries)
			return err
		})
		if !isOTIDRace(err) && (!isNotFound(err) || !s.hasNewDefault(ctx, org, agentID, conversation)) {
			break
		}
	}
	return appended, c, err
}

// entries checks drafts and makes them ready to be stored.
func (s *Store) entries(ctx context.Context, org db.Org, drafts []Draft) ([]entry, error) {
	if len(drafts) == 0 || len(drafts) > MaxMessages {
		return nil, db.Invalid("%d messages are to be appended; it must be from 1 to %d", len(drafts), MaxMessages)
	}
	redactor, err := s.redactor(ctx, org)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	entries := make([]entry, len(drafts))
	for i, d := range drafts {
		if entries[i], err = newEntry(d, redactor, now); err != nil {
			return nil, &DraftError{At: i, Err: err}
		}
		entries[i].at = i
	}
	return entries, nil
}

// hasNewDefault reports whether the agent has the default conversation that was asked for: a reset may have replaced it
// while an append waited for its lock.
func (s *Store) hasNewDefault(ctx context.Context, org db.Org, agentID, conversation string) bool {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	return err == nil && c.IsDefault
}

// conversationEnd is a locked conversation, whose counts change as messages are appended.
type conversationEnd struct {
	Conversation
	Session   int        `db:"session"`    // position of the first message of the last session
	SessionAt *time.Time `db:"session_at"` // when its last message was said
	org       db.Org
}

func (s *Store) lockEnd(ctx context.Context, org db.Org, agentID, conversation string) (conversationEnd, error) {
	end, err := db.One[conversationEnd](ctx, s.db, `
		SELECT `+conversationColumns+`, c.session, c.session_at`+ofOrg+` AND `+chosen+`
		FOR UPDATE OF c`, pgx.StrictNamedArgs{"org": org, "agent": agentID, "conversation": conversation})
	end.org = org
	return end, conversationError(err, agentID, conversation)
}

func (s *Store) appendEntries(ctx context.Context, org db.Org, agentID, conversation string,
	entries []entry) ([]Appended, Conversation, error) {
	end, err := s.lockEnd(ctx, org, agentID, conversation)
	if err != nil {
		return nil, end.Conversation, err
	}
	out, fresh, err := s.dropRepeated(ctx, end, entries)
	if err != nil || len(fresh) == 0 {
		return out, end.Conversation, err
	}
	calls, err := s.pairCalls(ctx, end, fresh)
	if err != nil {
		return nil, end.Conversation, err
	}
	events := make([]event.Event, len(fresh))
	for i, e := range fresh {
		events[i] = event.Event{AgentID: agentID, Type: event.MessageAppended, RefID: "message-" + e.id.String()}
	}
	if events, err = event.Append(ctx, s.db.(pgx.Tx), org, events...); err != nil {
		return nil, end.Conversation, err
	}
	var batch pgx.Batch
	for i, e := range fresh {
		end.extend(e)
		if err := end.queueMessage(&batch, e, events[i].Seq); err != nil {
			return nil, end.Conversation, err
		}
		out[e.at] = Appended{ID: events[i].RefID, Seq: events[i].Seq, Position: end.Messages, Tokens: e.tokens, OTID: e.OTID,
			Orphans: orphansOf(e.Content)}
	}
	calls.queue(&batch, end)
	end.queue(&batch)
	return out, end.Conversation, db.Error(s.db.SendBatch(ctx, &batch).Close())
}

func orphansOf(parts []Part) []string {
	orphans := []string{}
	for _, p := range parts {
		if p.Orphan {
			orphans = append(orphans, p.CallID)
		}
	}
	return orphans
}

// A session is a run of messages with no gap longer than sessionGap, of at most sessionMessages.
const (
	sessionGap      = time.Hour
	sessionMessages = 200
)

// extend counts a message at the conversation's end, in the last session or as the first of a new one.
func (end *conversationEnd) extend(e *entry) {
	end.Messages++
	end.Tokens += int64(e.tokens)
	at := *e.CreatedAt
	if end.SessionAt == nil || at.Sub(*end.SessionAt).Abs() > sessionGap || end.Messages-end.Session >= sessionMessages {
		end.Session = end.Messages
	}
	end.SessionAt = &at
	if end.LastMessageAt == nil || at.After(*end.LastMessageAt) {
		end.LastMessageAt = &at
	}
}

// queueMessage queues the statements that store the conversation's last message.
func (end *conversationEnd) queueMessage(batch *pgx.Batch, e *entry, seq int64) error {
	end.queueLongResults(batch, e.longResults)
	content, err := json.Marshal(e.Content)
	if err != nil {
		return err
	}
	own, rest := weigh(end.AgentKey, e)
	batch.Queue(`
		INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, name, content, otid,
		                      otid_sha256, step_id, run_id, sender_id, group_id, model, is_err, tokens, length, created_at,
		                      lex, terms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		e.id, end.org, end.AgentKey, seq, end.Key, end.Messages, end.Session, e.Role, e.Name, content, e.OTID,
		e.digest, e.StepID, e.RunID, e.SenderID, e.GroupID, e.Model, e.IsErr, e.tokens, e.length, e.CreatedAt,
		own.lex, own.terms)
	for _, piece := range rest {
		batch.Queue(`
			INSERT INTO message_pieces (org, message_key, agent_key, conversation_key, role, created_at, lex, terms)
			SELECT org, key, agent_key, conversation_key, role, created_at, $4, $5
			FROM messages WHERE org = $1 AND conversation_key = $2 AND position = $3`,
			end.org, end.Key, end.Messages, piece.lex, piece.terms)
	}
	return nil
}

// queue queues the statement that stores the conversation's new end.
func (end *conversationEnd) queue(batch *pgx.Batch) {
	batch.Queue(`
		UPDATE conversations
		SET messages = $3, tokens = $4, session = $5, session_at = $6, last_message_at = $7, unembedded = true
		WHERE org = $1 AND key = $2`,
		end.org, end.Key, end.Messages, end.Tokens, end.Session, end.SessionAt, end.LastMessageAt)
}
