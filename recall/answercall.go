package recall

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// nameReturns sets the ToolNames of messages that have results.
func (s *Store) nameReturns(ctx context.Context, org db.Org, messages []Message) error {
	var keys []int64
	var calls []string
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == ToolReturn && !p.Orphan {
				keys, calls = append(keys, m.Key), append(calls, p.CallID)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	type row struct {
		Key    int64  `db:"key"`
		CallID string `db:"call_id"`
		Name   string `db:"name"`
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT m.key, t.call_id, t.name
		FROM unnest(@keys::bigint[], @calls::text[]) AS wanted (key, call_id)
		JOIN messages m ON m.key = wanted.key AND m.org = @org
		JOIN tool_calls t ON t.org = m.org AND t.conversation_key = m.conversation_key AND t.call_id = wanted.call_id
		                 AND t.result_position = m.position`,
		pgx.StrictNamedArgs{"org": org, "keys": keys, "calls": calls})
	names := map[int64]map[string]string{}
	for _, r := range rows {
		if names[r.Key] == nil {
			names[r.Key] = map[string]string{}
		}
		names[r.Key][r.CallID] = r.Name
	}
	for i := range messages {
		messages[i].ToolNames = names[messages[i].Key]
	}
	return err
}

// CallPlace is where a tool call stands in the log.
type CallPlace struct {
	AgentID      string
	Conversation string // an id, or DefaultConversation
	ID           string // the call's id
	Position     int    // the position of the call's message
}

// AnswerCall appends the result of a tool call. stored is false if the call does not exist or already has a result.
// AnswerCall locks the conversation and calls run in the transaction that stores the result: what run changes in that
// transaction is stored together with the result, or not at all.
func (s *Store) AnswerCall(ctx context.Context, org db.Org, call CallPlace, run func(tx pgx.Tx) (Draft, error)) (
	stored bool, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		store := s.With(tx)
		end, err := store.lockEnd(ctx, org, call.AgentID, call.Conversation)
		if err != nil {
			return err
		}
		stored, err = db.One[bool](ctx, tx, `
			SELECT EXISTS (
				SELECT FROM tool_calls
				WHERE org = $1 AND conversation_key = $2 AND call_id = $3 AND position = $4 AND result_position IS NULL
			)`, org, end.Key, call.ID, call.Position)
		if err != nil || !stored {
			return err
		}
		d, err := run(tx)
		if err != nil {
			return err
		}
		_, err = store.Append(ctx, org, call.AgentID, end.ID, []Draft{d})
		return err
	})
	return stored && err == nil, err
}

// Lock locks a conversation until the store's transaction ends: meanwhile nothing is appended to the conversation.
// ErrNotFound if the conversation is gone.
func (s *Store) Lock(ctx context.Context, org db.Org, c Conversation) error {
	_, err := s.lockEnd(ctx, org, c.AgentID, c.ID)
	return err
}

// OpenCall returns the position of the newest call in a conversation with this call id. ErrNotFound if there is no such
// call, ErrConflict if the call has a result.
func (s *Store) OpenCall(ctx context.Context, org db.Org, c Conversation, id string) (int, error) {
	type call struct {
		Position int  `db:"position"`
		Answered bool `db:"answered"`
	}
	found, err := db.One[call](ctx, s.db, `
		SELECT position, result_position IS NOT NULL AS answered FROM tool_calls
		WHERE org = $1 AND conversation_key = $2 AND call_id = $3
		ORDER BY position DESC
		LIMIT 1`, org, c.Key, id)
	if err == nil && found.Answered {
		err = db.Conflict("The tool call %s has a result already", db.Short(id))
	}
	return found.Position, db.OrNotFound(err, "The conversation has no tool call %s", db.Short(id))
}

// AnsweredCallOf returns the position of the newest call in a conversation that has this call id and a result.
// ErrNotFound if there is none.
func (s *Store) AnsweredCallOf(ctx context.Context, org db.Org, c Conversation, id string) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT position FROM tool_calls
		WHERE org = $1 AND conversation_key = $2 AND call_id = $3 AND result_position IS NOT NULL
		ORDER BY position DESC
		LIMIT 1`, org, c.Key, id)
}

// OpenAfter returns the position of the first message after a given position that has calls without a result; 0 if
// there is none.
func (s *Store) OpenAfter(ctx context.Context, org db.Org, c Conversation, after int) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT coalesce(min(t.position), 0) FROM tool_calls t
		WHERE t.org = $1 AND t.conversation_key = $2 AND t.position > $3 AND t.result_position IS NULL`, org, c.Key, after)
}

// AnsweredCall is a tool call with its result.
type AnsweredCall struct {
	Part         // the call
	Result *Part // nil if the call has none
}

// CallsAt returns the tool calls of the message at a position, in the message's order.
func (s *Store) CallsAt(ctx context.Context, org db.Org, conversation int64, position int) ([]AnsweredCall, error) {
	type row struct {
		Position int      `db:"position"`
		Content  []Part   `db:"content"`
		Answers  []string `db:"answers"` // call ids that the message has results for
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT m.position, m.content, ARRAY(
			SELECT t.call_id FROM tool_calls t
			WHERE t.org = $1 AND t.conversation_key = m.conversation_key AND t.position = $3
				AND t.result_position = m.position
		) AS answers
		FROM messages m
		WHERE m.org = $1 AND m.conversation_key = $2 AND (m.position = $3 OR m.position IN (
			SELECT result_position FROM tool_calls WHERE org = $1 AND conversation_key = $2 AND position = $3))
		ORDER BY m.position`, org, conversation, position)
	var calls []AnsweredCall
	for i, r := range rows {
		for _, p := range r.Content {
			switch {
			case i == 0 && p.Type == ToolCall:
				calls = append(calls, AnsweredCall{Part: p})
			case p.Type == ToolReturn && slices.Contains(r.Answers, p.CallID):
				for n := range calls {
					if calls[n].CallID == p.CallID {
						calls[n].Result = &p
					}
				}
			}
		}
	}
	return calls, err
}

// DefaultsWithOpenCalls returns those default conversations of the agents that have calls without a result. agents are
// keys.
func (s *Store) DefaultsWithOpenCalls(ctx context.Context, org db.Org, agents []int64) ([]Conversation, error) {
	return db.All[Conversation](ctx, s.db, conversationRows+` AND c.is_default AND c.agent_key = ANY (@agents)
		AND EXISTS (
			SELECT FROM tool_calls t
			WHERE t.org = @org AND t.conversation_key = c.key AND t.result_position IS NULL)`,
		pgx.StrictNamedArgs{"org": org, "agents": agents})
}

// QueueHasOpenCalls queues a query that sets has if the conversation with this key has calls without a result.
func QueueHasOpenCalls(batch *pgx.Batch, org db.Org, conversation int64, has *bool) {
	batch.Queue(`
		SELECT EXISTS (SELECT FROM tool_calls WHERE org = $1 AND conversation_key = $2 AND result_position IS NULL)`,
		org, conversation).QueryRow(func(row pgx.Row) error { return row.Scan(has) })
}
