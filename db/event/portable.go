package event

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Portable is an event in the file of an agent.
type Portable struct {
	AgentID string    `json:"agent_id"`
	Seq     int64     `json:"seq"`
	Type    Type      `json:"type"`
	RefID   string    `json:"ref_id"`
	At      time.Time `json:"at"`
}

// exportPage is how many events Export reads at a time.
const exportPage = 1000

// Export yields the events of an agent in order. It stops after the first error.
func Export(ctx context.Context, d db.DB, org db.Org, agentID string) iter.Seq2[Portable, error] {
	return func(yield func(Portable, error) bool) {
		for after := int64(0); ; after += exportPage {
			page, err := db.All[Event](ctx, d, `
				SELECT agent_id, seq, type, ref_id, at FROM events
				WHERE org = $1 AND agent_id = $2 AND seq > $3
				ORDER BY seq
				LIMIT $4`, org, agentID, after, exportPage)
			if err != nil {
				yield(Portable{}, err)
				return
			}
			for _, e := range page {
				if !yield(Portable(e), nil) {
					return
				}
			}
			if len(page) < exportPage {
				return
			}
		}
	}
}

// Restore stores the events of a restored agent, which must have none. events are all events of the agent, in order.
func Restore(ctx context.Context, tx pgx.Tx, org db.Org, agentID string, events iter.Seq2[Portable, error]) error {
	var page []Portable
	head := int64(0)
	for e, err := range events {
		if err != nil {
			return err
		}
		head++
		if e.Seq != head {
			return db.Invalid("the seq of an event of agent %s is %d; it must be %d, as events are numbered without a gap",
				agentID, e.Seq, head)
		}
		if !slices.Contains(Types, e.Type) {
			return db.Invalid("event %d of agent %s has the type %q, which there is not", e.Seq, agentID,
				db.Short(string(e.Type)))
		}
		if page = append(page, e); len(page) == exportPage {
			if err := restore(ctx, tx, org, page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	if err := restore(ctx, tx, org, page); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO agent_heads (org, agent_id, seq) VALUES ($1, $2, $3)`, org, agentID, head)
	return db.Error(err)
}

func restore(ctx context.Context, tx pgx.Tx, org db.Org, page []Portable) error {
	rows := pgx.CopyFromSlice(len(page), func(i int) ([]any, error) {
		e := page[i]
		return []any{e.AgentID, e.Seq, org, e.Type, e.RefID, e.At}, nil
	})
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"agent_id", "seq", "org", "type", "ref_id", "at"}, rows)
	return db.Error(err)
}

// PortableConsumer is a named reader of an agent's events in the file of the agent.
type PortableConsumer struct {
	AgentID string `db:"agent_id" json:"agent_id"`
	Consumer
}

// ExportConsumers lists the consumers of an agent's events, by name.
func ExportConsumers(ctx context.Context, d db.DB, org db.Org, agentID string) ([]PortableConsumer, error) {
	return db.All[PortableConsumer](ctx, d, `
		SELECT agent_id, `+consumerColumns+` FROM event_consumers
		WHERE org = $1 AND agent_id = $2
		ORDER BY name`, org, agentID)
}

// RestoreConsumer stores a consumer of a restored agent, after its events. ErrInvalid if the consumer's position is
// beyond the events.
func RestoreConsumer(ctx context.Context, tx pgx.Tx, org db.Org, c PortableConsumer) error {
	if _, err := CommitCursor(ctx, tx, org, Commit{AgentID: c.AgentID, Name: c.Name, Seq: c.Seq}); err != nil {
		return err
	}
	return db.Exec(ctx, tx, `
		UPDATE event_consumers SET created_at = $4, updated_at = $5 WHERE org = $1 AND agent_id = $2 AND name = $3`,
		org, c.AgentID, c.Name, c.CreatedAt, c.UpdatedAt)
}
