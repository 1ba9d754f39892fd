package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// MaxNeighbors is the most messages before another one, or after it, that Neighbors returns.
const MaxNeighbors = 100

// NeighborQuery names a message of an agent, and how many neighbors to return.
type NeighborQuery struct {
	AgentID, MessageID string
	Before, After      int    // messages, 0 to MaxNeighbors
	Conversation       string // of the message, an id or DefaultConversation; empty is any of the agent's
}

// Neighbors are consecutive messages of a conversation.
type Neighbors struct {
	Messages []Message // in their order
	At       int       // the index in Messages of the one that was asked for
	Total    int       // messages of the conversation, whose positions go from 1 to it
}

// Neighbors returns a message with those before and after it in its conversation. ErrNotFound if the agent has no such
// message; ErrInvalid if it asks for too many.
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
	at, err := db.One[center](ctx, s.db, `
		SELECT m.conversation_key, m.position, c.messages AS total
		FROM `+messageTables+`
		WHERE m.org = @org AND a.id = @agent AND m.id = @id AND `+inConversation, pgx.StrictNamedArgs{"org": org,
		"agent": q.AgentID, "id": uuidOf(q.MessageID), "within": q.Conversation})
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
