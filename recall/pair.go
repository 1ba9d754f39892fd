package recall

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// calls are the calls of tools in messages to be appended, and the open ones that they answer.
type calls struct {
	made    []call
	settled []settled
}

type call struct {
	id, name string
	position int
	result   *int
}

// settled is a call of the log that got its result.
type settled struct {
	id               string
	position, result int
}

// pair finds the calls and results in messages that will stand at the end of a conversation, in order, and marks results that no call
// waits for. A result belongs to the latest call of its id that has none.
func (s *Store) pair(ctx context.Context, h head, messages []prepared, fresh []int) (calls, error) {
	open, err := s.openCalls(ctx, h, messages, fresh)
	if err != nil {
		return calls{}, err
	}
	var all calls
	mine := map[string]int{} // the latest open call of an id, by its place in all.made
	for i, at := range fresh {
		position := h.Messages + 1 + i
		for p := range messages[at].Content {
			part := &messages[at].Content[p]
			switch part.Type {
			case ToolCall:
				if before, twice := mine[part.CallID]; twice && all.made[before].position == position {
					return calls{}, &DraftError{At: at, Err: db.Invalid("two calls of a tool have the id %q", short(part.CallID))}
				}
				mine[part.CallID] = len(all.made)
				all.made = append(all.made, call{id: part.CallID, name: part.Name, position: position})
			case ToolReturn:
				if waiting, ok := mine[part.CallID]; ok {
					all.made[waiting].result = &position
					messages[at].echo = messages[at].echo || echoes(all.made[waiting].name)
					delete(mine, part.CallID)
				} else if waiting, ok := open[part.CallID]; ok {
					all.settled = append(all.settled, settled{id: part.CallID, position: waiting.Position, result: position})
					messages[at].echo = messages[at].echo || echoes(waiting.Name)
					delete(open, part.CallID)
				} else {
					part.Orphan = true
				}
			}
		}
	}
	return all, nil
}

// openCall is a call of the log without a result.
type openCall struct {
	ID       string `db:"call_id"`
	Position int    `db:"position"`
	Name     string `db:"name"`
}

// openCalls are the conversation's open calls that messages have results of, the latest of each id.
func (s *Store) openCalls(ctx context.Context, h head, messages []prepared, fresh []int) (map[string]openCall, error) {
	var ids []string
	for _, at := range fresh {
		for _, part := range messages[at].Content {
			if part.Type == ToolReturn {
				ids = append(ids, part.CallID)
			}
		}
	}
	open := map[string]openCall{}
	if len(ids) == 0 {
		return open, nil
	}
	rows, err := db.All[openCall](ctx, s.db, `
		SELECT DISTINCT ON (call_id) call_id, position, name FROM tool_calls
		WHERE conversation_key = $1 AND call_id = ANY ($2) AND result_position IS NULL
		ORDER BY call_id, position DESC`, h.Key, ids)
	for _, r := range rows {
		open[r.ID] = r
	}
	return open, err
}

func (c calls) queue(batch *pgx.Batch, conversation int64) {
	for _, m := range c.made {
		batch.Queue(`INSERT INTO tool_calls (conversation_key, call_id, position, name, result_position) VALUES ($1, $2, $3, $4, $5)`,
			conversation, m.id, m.position, m.name, m.result)
	}
	for _, d := range c.settled {
		batch.Queue(`UPDATE tool_calls SET result_position = $4 WHERE conversation_key = $1 AND call_id = $2 AND position = $3`,
			conversation, d.id, d.position, d.result)
	}
}
