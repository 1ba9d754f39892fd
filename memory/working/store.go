package working

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// Store keeps working memories in Postgres.
type Store struct {
	DB     db.DB
	Recall *recall.Store // the log, with the evidence of entries
	Files  *files.Store
}

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Recall: s.Recall.With(tx), Files: s.Files.With(tx)}
}

// The kinds of authors.
const (
	ByAgent    = "agent"
	ByOperator = "operator"
	Automatic  = "automatic"
	ByFork     = "fork"
	ByReset    = "reset"
	ByHandover = "handover"
)

// Author says who made a version.
type Author struct {
	Kind string `json:"kind" enum:"agent,operator,automatic,fork,reset,handover" doc:"Who or what made the version."`
	db.Provenance
	From string `json:"from_conversation,omitempty" doc:"That the record came from."`
}

// Target names the conversation (its record is to be changed), the author and the expected version: nil is any, 0 is
// the version before the first change.
type Target struct {
	AgentID      string // empty if Conversation is an id
	Conversation string // an id, or recall.DefaultConversation of the agent
	Author       Author
	Expected     *int
	Window       int // context window in tokens, which the record's limits follow; 0: unknown
}

// row is a stored record.
type row struct {
	Version   int       `db:"version"`
	Record    Record    `db:"record"`
	Checked   int       `db:"checked"`
	Turned    int       `db:"turned"`
	UpdatedAt time.Time `db:"updated_at"`
}

const rowColumns = `version, record, checked, turned, updated_at`

// read returns the record of a conversation. If there is none, it returns a row of version 0.
func (s *Store) read(ctx context.Context, org db.Org, conversation int64) (row, error) {
	r, err := db.One[row](ctx, s.DB, `
		SELECT `+rowColumns+` FROM working_memories WHERE org = $1 AND conversation_key = $2`, org, conversation)
	if errors.Is(err, db.ErrNotFound) {
		return row{}, nil
	}
	return r, err
}

// OfConversation is the record of a conversation.
type OfConversation struct {
	ID        string    `db:"id"`
	IsDefault bool      `db:"is_default"`
	Record    Record    `db:"record"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Is reports whether conversation, an id or recall.DefaultConversation, names this conversation.
func (o OfConversation) Is(conversation string) bool {
	return conversation == o.ID || o.IsDefault && conversation == recall.DefaultConversation
}

// OfAgent returns the records of an agent's conversations, newest first. Conversations without a record are left out.
func (s *Store) OfAgent(ctx context.Context, org db.Org, agentID string, users db.UserScope) ([]OfConversation,
	error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID}
	return db.All[OfConversation](ctx, s.DB, `
		SELECT c.id, c.is_default, w.record, w.updated_at
		FROM agents a
		JOIN conversations c ON c.org = a.org AND c.agent_key = a.key AND c.deleted_at IS NULL
		JOIN working_memories w ON w.org = c.org AND w.conversation_key = c.key
		WHERE a.org = @org AND a.id = @agent AND c.org = @org AND w.org = @org AND `+users.Where(recall.UserOf, args)+`
		ORDER BY w.updated_at DESC, c.key
		LIMIT 200`, args)
}

// Memory returns the working memory of a conversation.
func (s *Store) Memory(ctx context.Context, org db.Org, c recall.Conversation) (Memory, error) {
	r, err := s.read(ctx, org, c.Key)
	return r.of(c), err
}

// of returns the row as the working memory of a conversation.
func (r row) of(c recall.Conversation) Memory {
	if r.Version == 0 {
		r.UpdatedAt = c.CreatedAt
	}
	record := r.Record.clone()
	return Memory{AgentID: c.AgentID, Conversation: c.ID, Version: r.Version, Tokens: Size(record),
		FieldTokens: FieldSizes(record), Record: record, Text: Render(record), UpdatedAt: r.UpdatedAt}
}

// Change changes the record of a conversation under its lock, all changes or none. It returns the new memory.
// ErrInvalid if a change breaks a rule or makes the record too large; *MismatchError if the record is not at the
// expected version.
func (s *Store) Change(ctx context.Context, org db.Org, t Target, changes []Change) (Memory, error) {
	m, _, err := s.ChangeFrom(ctx, org, t, changes)
	return m, err
}

// ChangeFrom is Change, and also returns the record before the changes.
func (s *Store) ChangeFrom(ctx context.Context, org db.Org, t Target, changes []Change) (m Memory, was Record,
	err error) {
	m, err = s.change(ctx, org, t, func(in *Store, l log, before *row) (Record, error) {
		was = before.Record
		return in.applyAll(ctx, org, l, was, changes)
	})
	return m, was, err
}

// change replaces the record of a conversation by the result of do. If the record stays the same, there is no new
// version.
func (s *Store) change(ctx context.Context, org db.Org, t Target,
	do func(in *Store, l log, before *row) (Record, error)) (m Memory, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		l, before, err := txStore.lock(ctx, org, t.AgentID, t.Conversation)
		if err != nil {
			return err
		}
		l.window = t.Window
		if m = before.of(l.Conversation); t.Expected != nil && *t.Expected != before.Version {
			return &MismatchError{Current: m}
		}
		after, err := do(txStore, l, before)
		if err != nil || same(before.Record, after) {
			return err
		}
		before.Record = after
		stored, err := txStore.store(ctx, org, l, before, t.Author)
		m = stored.of(l.Conversation)
		return err
	})
	return m, err
}

// lock locks a conversation and its record until the transaction ends, and returns them. Every transaction locks in
// this order: the conversation, the record, the agent's event log.
func (s *Store) lock(ctx context.Context, org db.Org, agentID, conversation string) (l log, r *row, err error) {
	if l.Conversation, err = s.Recall.Conversation(ctx, org, agentID, conversation); err != nil {
		return l, r, err
	}
	if _, err := s.DB.Exec(ctx, `
		SELECT FROM conversations WHERE org = $1 AND key = $2 FOR KEY SHARE`, org, l.Key); err != nil {
		return l, r, db.Error(err)
	}
	if _, err := s.DB.Exec(ctx, `
		INSERT INTO working_memories (org, agent_key, conversation_key) VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, org, l.AgentKey, l.Key); err != nil {
		return l, r, db.Error(err)
	}
	locked, err := db.One[row](ctx, s.DB, `
		SELECT `+rowColumns+` FROM working_memories WHERE org = $1 AND conversation_key = $2 FOR UPDATE`, org, l.Key)
	if err != nil {
		return l, r, err
	}
	r = &locked
	l.Conversation, err = s.Recall.Conversation(ctx, org, l.AgentID, l.ID) // read again under the lock
	if err != nil {
		return l, r, err
	}
	if !r.Record.restsOn(OfCall) {
		r.Checked = l.Messages
	}
	l.compared = &r.Checked
	newest, err := s.Recall.Between(ctx, org, l.Conversation, l.Messages, l.Messages)
	if len(newest) > 0 {
		l.last = newest[0].Seq
	}
	return l, r, err
}

// store stores a changed record as a new version, with an event.
func (s *Store) store(ctx context.Context, org db.Org, l log, r *row, author Author) (row, error) {
	author.Provenance = author.Or(ctx)
	written, err := event.Append(ctx, s.DB.(pgx.Tx), org,
		event.Event{AgentID: l.AgentID, Type: event.WorkingMemoryChanged, RefID: l.ID})
	if err != nil {
		return row{}, err
	}
	stored, err := db.One[row](ctx, s.DB, `
		UPDATE working_memories SET version = version + 1, record = $3, checked = $4, updated_at = now()
		WHERE org = $1 AND conversation_key = $2
		RETURNING `+rowColumns, org, l.Key, r.Record, r.Checked)
	if err != nil {
		return row{}, err
	}
	_, err = s.DB.Exec(ctx, `
		INSERT INTO working_memory_versions (org, conversation_key, version, author, record, seq)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		org, l.Key, stored.Version, author, stored.Record.unmarked(), written[0].Seq)
	return stored, db.Error(err)
}
