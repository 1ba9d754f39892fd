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

// Consumer is a named reader of an agent's events and how far it has come. Readers of one agent do not know of each other.
type Consumer struct {
	Name      string    `db:"id" json:"name"`
	Seq       int64     `db:"seq" json:"seq"` // of the last event that it is done with; 0 at first
	CreatedAt time.Time `db:"created_at" json:"created_at"`
	UpdatedAt time.Time `db:"updated_at" json:"updated_at"`
}

const consumerColumns = `name AS id, seq, created_at, updated_at`

// maxConsumerChars bounds a consumer's name, in characters.
const maxConsumerChars = 200

// Consumers lists an agent's consumers by name; Before and After of the page are names. ErrNotFound if the agent is not there.
func Consumers(ctx context.Context, d db.DB, org db.Org, agentID string, p db.Page) ([]Consumer, error) {
	if _, err := Head(ctx, d, org, agentID); err != nil {
		return nil, err
	}
	return db.List[Consumer](ctx, d, p, `
		SELECT `+consumerColumns+` FROM event_consumers WHERE org = @org AND agent_id = @agent`, "id",
		pgx.StrictNamedArgs{"org": org, "agent": agentID})
}

// ConsumerNamed returns a consumer by its name. ErrNotFound if the agent is not there, or has no such consumer.
func ConsumerNamed(ctx context.Context, d db.DB, org db.Org, agentID, name string) (Consumer, error) {
	if err := checkConsumer(name); err != nil {
		return Consumer{}, err
	}
	c, err := db.One[Consumer](ctx, d, `
		SELECT `+consumerColumns+` FROM event_consumers WHERE org = $1 AND agent_id = $2 AND name = $3`, org, agentID, name)
	return c, consumerError(ctx, d, org, agentID, name, err)
}

// Cursor is how far a consumer of an agent has come; 0 if there is no such consumer yet. ErrNotFound if the agent is not there.
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

// CommitCursor stores how far a consumer has come, forwards or back, and makes the consumer if it is not there. With expected, it does so only if
// the consumer stands there: of several readers that share a name, one gets each event. ErrConflict says where it stands instead;
// ErrInvalid if seq lies beyond the agent's newest event; ErrNotFound if the agent is not there.
func CommitCursor(ctx context.Context, d db.DB, org db.Org, agentID, name string, seq int64, expected *int64) (Consumer, error) {
	if err := checkConsumer(name); err != nil {
		return Consumer{}, err
	}
	head, err := Head(ctx, d, org, agentID)
	if err != nil {
		return Consumer{}, err
	}
	if seq < 0 || seq > head {
		return Consumer{}, db.Invalid("seq is %d; it must be from 0 to %d, the agent's newest event", seq, head)
	}
	c, err := commit(ctx, d, org, agentID, name, seq, expected)
	if !errors.Is(err, db.ErrNotFound) || expected == nil {
		return c, err
	}
	now, err := Cursor(ctx, d, org, agentID, name)
	if err != nil {
		return Consumer{}, err
	}
	return Consumer{}, db.Conflict("expected_seq is %d, but consumer '%s' stands at %d; read on from there, or commit without expected_seq",
		*expected, name, now)
}

// commit returns ErrNotFound if the consumer does not stand where it is expected to. One that is not there stands at 0.
func commit(ctx context.Context, d db.DB, org db.Org, agentID, name string, seq int64, expected *int64) (Consumer, error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "name": name, "seq": seq, "expected": expected}
	if expected != nil && *expected != 0 {
		return db.One[Consumer](ctx, d, `
			UPDATE event_consumers SET seq = @seq, updated_at = now()
			WHERE org = @org AND agent_id = @agent AND name = @name AND seq = @expected
			RETURNING `+consumerColumns, args)
	}
	return db.One[Consumer](ctx, d, `
		INSERT INTO event_consumers AS c (org, agent_id, name, seq) VALUES (@org, @agent, @name, @seq)
		ON CONFLICT (agent_id, name) DO UPDATE SET seq = excluded.seq, updated_at = now()
		WHERE c.org = excluded.org AND (@expected::bigint IS NULL OR c.seq = @expected)
		RETURNING `+consumerColumns, args)
}

// DeleteConsumer forgets a consumer and how far it had come. ErrNotFound if the agent is not there, or has no such consumer.
func DeleteConsumer(ctx context.Context, d db.DB, org db.Org, agentID, name string) error {
	if err := checkConsumer(name); err != nil {
		return err
	}
	err := db.Exec(ctx, d, `DELETE FROM event_consumers WHERE org = $1 AND agent_id = $2 AND name = $3`, org, agentID, name)
	return consumerError(ctx, d, org, agentID, name, err)
}

// consumerError says what is not there: the agent, or its consumer.
func consumerError(ctx context.Context, d db.DB, org db.Org, agentID, name string, err error) error {
	if !errors.Is(err, db.ErrNotFound) {
		return err
	}
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
