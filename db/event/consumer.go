package event

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Consumer is a named reader of an agent's events, with the position that it has reached. Consumers do not affect each
// other.
type Consumer struct {
	Name      string    `db:"id" json:"name"`
	Seq       int64     `db:"seq" json:"seq"` // last event that it has handled; 0 at first
	CreatedAt time.Time `db:"created_at" json:"created_at"`
	UpdatedAt time.Time `db:"updated_at" json:"updated_at"`
}

const consumerColumns = `name AS id, seq, created_at, updated_at`

// maxConsumerChars is the longest name of a consumer, in characters.
const maxConsumerChars = 200

// Consumers lists an agent's consumers by name. The page's Before and After are names. ErrNotFound if the agent does
// not exist.
func Consumers(ctx context.Context, d db.DB, org db.Org, agentID string, p db.Page) ([]Consumer, error) {
	if _, err := Head(ctx, d, org, agentID); err != nil {
		return nil, err
	}
	p.Order = "id"
	return db.List[Consumer](ctx, d, p, `
		SELECT `+consumerColumns+` FROM event_consumers WHERE org = @org AND agent_id = @agent`,
		pgx.StrictNamedArgs{"org": org, "agent": agentID})
}

// ConsumerNamed returns a consumer by its name. ErrNotFound if the agent does not exist or has no such consumer.
func ConsumerNamed(ctx context.Context, d db.DB, org db.Org, agentID, name string) (Consumer, error) {
	if err := checkConsumer(name); err != nil {
		return Consumer{}, err
	}
	c, err := db.One[Consumer](ctx, d, `
		SELECT `+consumerColumns+` FROM event_consumers
		WHERE org = $1 AND agent_id = $2 AND name = $3`, org, agentID, name)
	if errors.Is(err, db.ErrNotFound) {
		err = noConsumer(ctx, d, org, agentID, name)
	}
	return c, err
}

// Cursor returns the position of a consumer, or 0 if the agent has no such consumer yet. ErrNotFound if the agent does
// not exist.
func Cursor(ctx context.Context, d db.DB, org db.Org, agentID, name string) (int64, error) {
	if _, err := Head(ctx, d, org, agentID); err != nil {
		return 0, err
	}
	c, err := ConsumerNamed(ctx, d, org, agentID, name)
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil
	}
	return c.Seq, err
}

// Commit is a new position for a consumer.
type Commit struct {
	AgentID, Name string
	Seq           int64  // may be lower than the current position
	Expected      *int64 // required current position, 0 for a new consumer; nil: any
}

// CommitCursor sets the position of a consumer, and creates the consumer if there is none. If Expected is set, the
// consumer must be at that position: then each event goes to only one of several readers with the same name.
// ErrConflict if the consumer is elsewhere; ErrInvalid if Seq is beyond the agent's newest event; ErrNotFound if the
// agent does not exist.
func CommitCursor(ctx context.Context, d db.DB, org db.Org, c Commit) (Consumer, error) {
	if err := checkConsumer(c.Name); err != nil {
		return Consumer{}, err
	}
	head, err := Head(ctx, d, org, c.AgentID)
	if err != nil {
		return Consumer{}, err
	}
	if c.Seq < 0 || c.Seq > head {
		return Consumer{}, db.Invalid("seq is %d; it must be from 0 to %d, the agent's newest event", c.Seq, head)
	}
	stored, err := c.store(ctx, d, org)
	if !errors.Is(err, db.ErrNotFound) || c.Expected == nil {
		return stored, err
	}
	position, err := Cursor(ctx, d, org, c.AgentID, c.Name)
	if err != nil {
		return Consumer{}, err
	}
	return Consumer{}, db.Conflict("expected_seq is %d, but consumer '%s' stands at %d; "+
		"read on from there, or commit without expected_seq", *c.Expected, c.Name, position)
}

// store returns ErrNotFound if the consumer is not at the expected position.
func (c Commit) store(ctx context.Context, d db.DB, org db.Org) (Consumer, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": c.AgentID, "name": c.Name, "seq": c.Seq, "expected": c.Expected}
	if c.Expected != nil && *c.Expected != 0 {
		return db.One[Consumer](ctx, d, `
			UPDATE event_consumers SET seq = @seq, updated_at = now()
			WHERE org = @org AND agent_id = @agent AND name = @name AND seq = @expected
			RETURNING `+consumerColumns, args)
	}
	return db.One[Consumer](ctx, d, `
		INSERT INTO event_consumers AS c (org, agent_id, name, seq) VALUES (@org, @agent, @name, @seq)
		ON CONFLICT (org, agent_id, name) DO UPDATE SET seq = excluded.seq, updated_at = excluded.updated_at
		WHERE @expected::bigint IS NULL OR c.seq = @expected
		RETURNING `+consumerColumns, args)
}

// DeleteConsumer deletes a consumer and its position. ErrNotFound if the agent does not exist or has no such consumer.
func DeleteConsumer(ctx context.Context, d db.DB, org db.Org, agentID, name string) error {
	if err := checkConsumer(name); err != nil {
		return err
	}
	err := db.Exec(ctx, d, `
		DELETE FROM event_consumers WHERE org = $1 AND agent_id = $2 AND name = $3`, org, agentID, name)
	if errors.Is(err, db.ErrNotFound) {
		err = noConsumer(ctx, d, org, agentID, name)
	}
	return err
}

// noConsumer returns an ErrNotFound that says whether the agent or the consumer does not exist.
func noConsumer(ctx context.Context, d db.DB, org db.Org, agentID, name string) error {
	if _, err := Head(ctx, d, org, agentID); err != nil {
		return err
	}
	return db.NotFound("agent %s has no consumer '%s'; the first commit makes it", agentID, name)
}

func checkConsumer(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return db.Invalid("the consumer's name %.200q has control characters, or is not UTF-8", name)
	}
	if n := utf8.RuneCountInString(name); n < 1 || n > maxConsumerChars {
		return db.Invalid("the consumer's name has %d characters; it must have from 1 to %d", n, maxConsumerChars)
	}
	return nil
}
