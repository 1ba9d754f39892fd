// Package handover hands a session over to the next session. From what was said, it makes updates of working memory
// and memory files, each with the positions of the messages behind it. A model makes the updates; without a usable
// model, rules do.
//
// Each file uses those that are named before it:
//   - what was said in a session, and its hand-overs: material.go handover.go
//   - what the session leaves, found by a model or by rules: propose.go signs.go extract.go
//   - where each update goes: route.go
//   - the work on a hand-over: make.go job.go
package handover

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

// Store makes hand-overs. DB and Agents must be set.
type Store struct {
	DB       db.DB
	Agents   *agent.Store  // also holds the queue of jobs; without a queue, a request makes its hand-over itself
	Patience time.Duration // how long a request waits for a hand-over; 0 means the constant Patience
}

// Begun returns a function for agent.Store.Begun. It lets each new conversation of an agent begin with a hand-over.
func Begun(agents *agent.Store) func(context.Context, pgx.Tx, db.Org, recall.Conversation) error {
	return func(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation) error {
		return (&Store{Agents: agents}).With(tx).Take(ctx, org, c)
	}
}

// With returns a store that works in tx.
func (s *Store) With(tx pgx.Tx) *Store {
	return &Store{DB: tx, Agents: s.Agents.With(tx), Patience: s.Patience}
}

// The states of a hand-over.
const (
	Running = "running" // a job is making it
	Waiting = "waiting" // its updates wait for an operator's decision
	Done    = "done"
	Empty   = "empty" // nothing was said since the last hand-over
	Failed  = "failed"
)

// The ways to make updates.
const (
	ByModel   = "model"
	Extracted = "extracted"
)

// Handover passes knowledge from one session to the next.
type Handover struct {
	Key            int64      `db:"key" json:"-"`
	ID             string     `db:"id" json:"id"`
	AgentID        string     `db:"agent_id" json:"agent_id"`
	ConversationID string     `db:"conversation_id" json:"conversation_id" doc:"That was handed over."`
	IdentityID     *string    `db:"identity_id" json:"identity_id" doc:"Whom it was with; null if nobody said."`
	Position       int        `db:"position" json:"position" doc:"Of its last message that counts."`
	Status         string     `db:"status" json:"status" enum:"running,waiting,done,empty,failed" doc:"What it does."`
	Pending        bool       `db:"pending" json:"pending" doc:"Its updates wait for an operator."`
	Carry          bool       `db:"carry" json:"carry" doc:"The agent's next conversation begins with it."`
	How            *string    `db:"how" json:"how" enum:"model,extracted" doc:"Who made the updates; null before."`
	Why            *string    `db:"why" json:"why" doc:"Why a model did not make them, or why it failed."`
	TakenBy        *string    `db:"taken_by_id" json:"taken_by" doc:"The conversation that began with it."`
	CreatedAt      time.Time  `db:"created_at" json:"created_at"`
	EndedAt        *time.Time `db:"ended_at" json:"ended_at" doc:"Null while it is made."`
	Updates        []Update   `db:"-" json:"updates" doc:"Of working memory and memory files."`

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"What began it; null if unknown."`

	TakenKey *int64 `db:"taken_by" json:"-"`
}

// The sections of a hand-over.
const (
	SectionTask    = "task"
	SectionDone    = "done"
	SectionDecided = "decided"
	SectionLearned = "learned"
	SectionOpen    = "open"
	SectionNext    = "next"
	SectionBlocked = "blocked"
	SectionEntity  = "entity"
)

// The states of an update.
const (
	Proposed = "proposed"
	Applied  = "applied"
	Rejected = "rejected"
	Refused  = "refused" // a rule of the memory forbids it
)

// Update is one fact that the next session should know, and the memory that it is written to.
type Update struct {
	Number    int        `db:"number" json:"number" doc:"From 1, in the hand-over."`
	Section   string     `db:"section" json:"section" enum:"task,done,decided,learned,open,next,blocked,entity" doc:"What it is."` //nolint:lll // a tag is one line
	Text      string     `db:"text" json:"text" doc:"One line."`
	Seqs      []int64    `db:"seqs" json:"seqs" doc:"Positions in the agent's log that it came from."`
	Target    string     `db:"target" json:"target" doc:"A field of working memory, or the path of a memory file."`
	Entity    *string    `db:"entity" json:"entity" doc:"Of section entity: whom or what it is about."`
	Status    string     `db:"status" json:"status" enum:"proposed,applied,rejected,refused" doc:"What became of it."`
	Why       *string    `db:"why" json:"why" doc:"Why it was refused, or the index does not point to its file."`
	DecidedAt *time.Time `db:"decided_at" json:"decided_at" doc:"Null while it is proposed."`

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who decided on it; null if unknown, or nobody did."`
}

const rows = `
	SELECT h.key, h.id, a.id AS agent_id, c.id AS conversation_id, h.identity_id, h.position,
	       h.status, h.pending, h.carry, h.how, h.why,
	       t.id AS taken_by_id, h.taken_by, h.created_at, h.ended_at, h.provenance
	FROM handovers h
	JOIN agents a ON a.org = h.org AND a.key = h.agent_key
	JOIN conversations c ON c.org = h.org AND c.key = h.conversation_key
	LEFT JOIN conversations t ON t.org = h.org AND t.key = h.taken_by
	WHERE h.org = @org AND a.org = @org AND a.id = @agent `

// Handover returns a hand-over of an agent, with its updates. ErrNotFound if it does not exist.
func (s *Store) Handover(ctx context.Context, org db.Org, agentID, id string) (Handover, error) {
	h, err := db.One[Handover](ctx, s.DB, rows+`AND h.id = @id`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID, "id": id})
	if err != nil {
		return h, db.OrNotFound(err, "Hand-over with ID %s not found", id)
	}
	h.Updates, err = s.updates(ctx, org, h)
	return h, err
}

// Handovers lists the hand-overs of an agent with their updates, the newest first.
func (s *Store) Handovers(ctx context.Context, org db.Org, agentID string, limit int) ([]Handover, error) {
	list, err := db.All[Handover](ctx, s.DB, rows+`ORDER BY h.key DESC LIMIT @limit`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID, "limit": limit})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Updates, err = s.updates(ctx, org, list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const updateColumns = `number, section, text, seqs, target, entity, status, why, decided_at, provenance`

func (s *Store) updates(ctx context.Context, org db.Org, h Handover) ([]Update, error) {
	all, err := db.All[Update](ctx, s.DB, `
		SELECT `+updateColumns+` FROM handover_updates WHERE org = $1 AND handover_key = $2 ORDER BY number`, org, h.Key)
	return append([]Update{}, all...), err
}

// Options say how to hand over a conversation.
type Options struct {
	Pending bool // the updates wait for an operator's decision
	Carry   bool // the agent's next conversation begins with the hand-over

	// Named are the options that the caller set explicitly. ErrConflict if a hand-over of the same messages has other
	// values for them.
	Named NamedOptions

	// May is called in the transaction that begins the hand-over; until its end, nobody can add messages to the
	// conversation. An error of May refuses the hand-over; a nil May allows it.
	May func(pgx.Tx) error
}

// NamedOptions are options that the caller set explicitly; a nil field was not set.
type NamedOptions struct{ Pending, Carry *bool }

// check returns an ErrConflict if the hand-over of the same messages was made with other options.
func (n NamedOptions) check(last lastHandover) error {
	differ := func(named *bool, last bool) bool { return named != nil && *named != last }
	if last.Status == Empty || !differ(n.Pending, last.Pending) && !differ(n.Carry, last.Carry) {
		return nil
	}
	return db.Conflict("Nothing was said since hand-over %s, which was made with pending %t and carry %t: ask for it "+
		"without other options, or hand over again when something was said", last.ID, last.Pending, last.Carry)
}

// lastHandover is the newest hand-over of a conversation.
type lastHandover struct {
	ID       string `db:"id"`
	Position int    `db:"position"`
	Status   string `db:"status"`
	Pending  bool   `db:"pending"`
	Carry    bool   `db:"carry"`
}

// Begin begins a hand-over of what was said in a conversation, or returns the existing hand-over of the same messages.
// Its status is Running if a job, or Make, must still make it, and Empty if nothing was said since the last hand-over.
// ErrConflict if the existing hand-over has other values for the named options.
func (s *Store) Begin(ctx context.Context, org db.Org, c recall.Conversation, o Options) (h Handover, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if _, err := tx.Exec(ctx, `
			SELECT FROM conversations WHERE org = $1 AND key = $2 FOR NO KEY UPDATE`, org, c.Key); err != nil {
			return db.Error(err)
		}
		if o.May != nil {
			if err := o.May(tx); err != nil {
				return err
			}
		}
		if c, err = inTx.Agents.Recall.Conversation(ctx, org, c.AgentID, c.ID); err != nil {
			return err
		}
		id, err := inTx.begin(ctx, org, c, o)
		if err != nil {
			return err
		}
		h, err = inTx.Handover(ctx, org, c.AgentID, id)
		return err
	})
	return h, err
}

// begin does the work of Begin, and returns the id of the hand-over. The conversation must be locked.
func (s *Store) begin(ctx context.Context, org db.Org, c recall.Conversation, o Options) (string, error) {
	last, err := db.One[lastHandover](ctx, s.DB, `
		SELECT id, position, status, pending, carry FROM handovers
		WHERE org = $1 AND conversation_key = $2 AND status <> 'failed'
		  AND NOT (status = 'done' AND how = 'extracted' AND starts_with(coalesce(why, ''), $3))
		ORDER BY position DESC LIMIT 1`, org, c.Key, nothingFound)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return "", err
	}
	m, err := s.snapshot(ctx, org, c, last.Position)
	if err != nil {
		return "", err
	}
	if len(m.Lines) == 0 && last.ID != "" {
		return last.ID, o.Named.check(last)
	}
	status, position, material := Running, 0, &m
	if len(m.Lines) == 0 {
		status, material = Empty, nil
	} else {
		position = m.Position
	}
	identity, err := s.with(ctx, org, c)
	if err != nil {
		return "", err
	}
	// Where a hand-over of the same messages failed or found nothing, it is made anew.
	id, err := db.One[string](ctx, s.DB, `
		INSERT INTO handovers (org, agent_key, conversation_key, position, status, pending, carry, material, ended_at,
		                       identity_id, provenance)
		VALUES (@org, @agent, @conversation, @position, @status, @pending, @carry, @material,
		        now() + CASE WHEN @status = 'empty' THEN interval '0' END, @identity, @provenance)
		ON CONFLICT (org, conversation_key, position)
		DO UPDATE SET status = excluded.status, pending = excluded.pending, carry = excluded.carry,
		              material = excluded.material, ended_at = excluded.ended_at, how = NULL, why = NULL,
		              identity_id = excluded.identity_id, provenance = excluded.provenance
		RETURNING id`,
		pgx.StrictNamedArgs{"org": org, "agent": c.AgentKey, "conversation": c.Key, "position": position,
			"status": status, "pending": o.Pending, "carry": o.Carry, "material": material, "identity": identity,
			"provenance": db.ProvenanceOf(ctx)})
	if err != nil || status == Empty {
		return id, err
	}
	return id, s.queue(ctx, org, c.AgentID, id)
}

// hasNotGone is the SQL condition that a conversation c still exists. A reset conversation counts as existing.
const hasNotGone = `(c.deleted_at IS NULL OR c.reset_at IS NOT NULL)`

// with returns the id of the identity that takes part in a conversation; nil if there is none.
func (s *Store) with(ctx context.Context, org db.Org, c recall.Conversation) (*string, error) {
	ids, err := s.Agents.ConversationIdentities(ctx, org, c)
	if id := ids[c.Key]; id != "" {
		return &id, err
	}
	return nil, err
}

// Take lets a new conversation begin with the agent's newest hand-over for the same identity (for no identity, if the
// conversation has none). The conversation continues the working memory of the conversation that was handed over,
// unless that conversation was deleted. Take also assigns to it the other hand-overs that nobody has taken and that are
// unfinished or have waiting updates, so their updates follow later.
func (s *Store) Take(ctx context.Context, org db.Org, c recall.Conversation) error {
	identity, err := s.with(ctx, org, c)
	if err != nil {
		return err
	}
	from, err := db.One[int64](ctx, s.DB, `
		UPDATE handovers SET taken_by = $3
		WHERE org = $1 AND key = (
			SELECT max(h.key)
			FROM handovers h JOIN conversations c ON c.org = h.org AND c.key = h.conversation_key
			WHERE h.org = $1 AND c.org = $1 AND h.agent_key = $2 AND h.status <> 'empty' AND h.status <> 'failed'
			  AND h.identity_id IS NOT DISTINCT FROM $4 AND `+hasNotGone+`)
		  AND taken_by IS NULL AND carry AND conversation_key <> $3
		RETURNING conversation_key`, org, c.AgentKey, c.Key, identity)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := s.DB.Exec(ctx, `
		UPDATE handovers h SET taken_by = $3
		FROM conversations c
		WHERE h.org = $1 AND c.org = $1 AND c.key = h.conversation_key AND h.agent_key = $2
		  AND h.status IN ('running', 'waiting') AND h.identity_id IS NOT DISTINCT FROM $4 AND `+hasNotGone+`
		  AND h.taken_by IS NULL AND h.carry AND h.conversation_key <> $3`, org, c.AgentKey, c.Key, identity); err != nil {
		return db.Error(err)
	}
	id, err := db.One[string](ctx, s.DB, `SELECT id FROM conversations WHERE org = $1 AND key = $2`, org, from)
	if err != nil {
		return err
	}
	return s.Agents.Working.Continue(ctx, org, working.Predecessor{Key: from, ID: id}, c)
}
