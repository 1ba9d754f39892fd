package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// MaxNeighbors is the most messages that Neighbors returns on each side.
const MaxNeighbors = 100

// NeighborQuery names a message of an agent, and how many messages around it to return.
type NeighborQuery struct {
	AgentID, MessageID string
	Before, After      int // messages, 0 to MaxNeighbors
	Reach                  // where the message is
}

// Neighbors are consecutive messages of a conversation, in their order.
type Neighbors struct {
	Messages []Message // in their order
	At       int       // index in Messages of the message that was asked for
	Total    int       // messages in the conversation; their positions are 1 to Total
}

// Neighbors returns a message together with messages before and after it. ErrNotFound if the agent has no such message;
// ErrInvalid if the query asks for too many.
func (s *Store) Neighbors(ctx context.Context, org db.Org, q NeighborQuery) (Neighbors, error) {
	if q.Before < 0 || q.Before > MaxNeighbors || q.After < 0 || q.After > MaxNeighbors {
		return Neighbors{}, db.Invalid("before and after must be from 0 to %d messages. Got: %d and %d",
			MaxNeighbors, q.Before, q.After)
	}
	type center struct {
		Conversation int64 `db:"conversation_key"`
		Position     int   `db:"position"`
		Total        int   `db:"total"`
	}
	args := pgx.StrictNamedArgs{"org": org, "agent": q.AgentID, "id": uuidOf(q.MessageID)}
	at, err := db.One[center](ctx, s.db, `
		SELECT m.conversation_key, m.position, c.messages AS total
		FROM `+messageTables+`
		WHERE m.org = @org AND a.id = @agent AND m.id = @id AND `+q.where(args), args)
	if err != nil {
		return Neighbors{}, messageError(err, db.Short(q.MessageID))
	}
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+`
		FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position BETWEEN $3::integer AND $4::integer
		ORDER BY m.position`, org, at.Conversation, at.Position-q.Before, at.Position+q.After)
	place := slices.IndexFunc(rows, func(m Message) bool { return m.Position == at.Position })
	if err == nil && place < 0 { // deleted since the first statement
		return Neighbors{}, messageError(db.ErrNotFound, db.Short(q.MessageID))
	}
	return Neighbors{Messages: rows, At: place, Total: at.Total}, err
}
