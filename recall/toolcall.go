package recall

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// toolCall is a call of a tool, at the position of its message.
type toolCall struct {
	ID       string `db:"call_id"`
	Name     string `db:"name"`
	Position int    `db:"position"`
	result   *int   // position of its result, nil if it has none
}

// pairing pairs tool calls with their results. A result belongs to the latest call of its id that has none.
type pairing struct {
	stored   map[string][]toolCall // open calls of the log, by id, the latest last
	open     map[string][]int      // open calls of this append: indices of made, by id
	made     []toolCall            // by this append
	answered []toolCall            // of the log, by this append
}

// pairCalls pairs the tool calls and results of entries that will stand at the end of a conversation, in order. It
// marks results without a call as orphans, and entries that repeat the log.
func (s *Store) pairCalls(ctx context.Context, end conversationEnd, fresh []*entry) (*pairing, error) {
	stored, err := s.openCalls(ctx, end, fresh)
	if err != nil {
		return nil, err
	}
	p := &pairing{stored: stored, open: map[string][]int{}}
	for i, e := range fresh {
		position := end.Messages + 1 + i
		for n := range e.Content {
			part := &e.Content[n]
			switch part.Type {
			case ToolCall:
				if !p.call(part, position) {
					return nil, &DraftError{At: e.at, Err: db.Invalid("two calls of a tool have the id %q", short(part.CallID))}
				}
			case ToolReturn:
				tool, found := p.answer(part.CallID, position)
				part.Orphan = !found
				e.repeatsLog = e.repeatsLog || repeatsLog(tool)
			}
		}
	}
	return p, nil
}

// call adds a call; it reports false if its message has another one of the same id.
func (p *pairing) call(part *Part, position int) bool {
	before := p.open[part.CallID]
	if n := len(before); n > 0 && p.made[before[n-1]].Position == position {
		return false
	}
	p.open[part.CallID] = append(before, len(p.made))
	p.made = append(p.made, toolCall{ID: part.CallID, Name: part.Name, Position: position})
	return true
}

// answer closes the latest open call of an id with the result at a position, and returns the tool.
func (p *pairing) answer(id string, position int) (tool string, found bool) {
	if n := len(p.open[id]) - 1; n >= 0 {
		call := &p.made[p.open[id][n]]
		p.open[id] = p.open[id][:n]
		call.result = &position
		return call.Name, true
	}
	n := len(p.stored[id]) - 1
	if n < 0 {
		return "", false
	}
	call := p.stored[id][n]
	p.stored[id] = p.stored[id][:n]
	call.result = &position
	p.answered = append(p.answered, call)
	return call.Name, true
}

// openCalls reads the stored calls without a result that entries have results of, as many of each id as may be needed.
func (s *Store) openCalls(ctx context.Context, end conversationEnd, fresh []*entry) (map[string][]toolCall, error) {
	open := map[string][]toolCall{}
	var ids []string
	for _, e := range fresh {
		for _, part := range e.Content {
			if part.Type == ToolReturn {
				ids = append(ids, part.CallID)
			}
		}
	}
	if len(ids) == 0 {
		return open, nil
	}
	rows, err := db.All[toolCall](ctx, s.db, `
		SELECT call_id, position, name
		FROM (
			SELECT t.call_id, t.position, t.name,
			       row_number() OVER (PARTITION BY t.call_id ORDER BY t.position DESC) AS nth
			FROM tool_calls t JOIN conversations c ON c.key = t.conversation_key
			WHERE c.org = $1 AND c.key = $2 AND t.call_id = ANY ($3) AND t.result_position IS NULL
		) latest
		WHERE nth <= $4
		ORDER BY position`, end.org, end.Key, ids, len(ids))
	for _, r := range rows {
		open[r.ID] = append(open[r.ID], r)
	}
	return open, err
}

// queue queues the statements that store the calls and results.
func (p *pairing) queue(batch *pgx.Batch, end conversationEnd) {
	for _, m := range p.made {
		batch.Queue(`
			INSERT INTO tool_calls (conversation_key, call_id, position, name, result_position)
			SELECT key, $3, $4, $5, $6 FROM conversations WHERE org = $1 AND key = $2`,
			end.org, end.Key, m.ID, m.Position, m.Name, m.result)
	}
	for _, a := range p.answered {
		batch.Queue(`
			UPDATE tool_calls t SET result_position = $5
			FROM conversations c
			WHERE c.org = $1 AND c.key = $2 AND t.conversation_key = c.key AND t.call_id = $3 AND t.position = $4`,
			end.org, end.Key, a.ID, a.Position, a.result)
	}
}

// Return names the result of a tool call: the key of its message, and the call's id.
type Return struct {
	Key    int64  `db:"key"`
	CallID string `db:"call_id"`
}

// ReturnsOf returns which results in messages are of calls of a tool.
func (s *Store) ReturnsOf(ctx context.Context, org db.Org, tool string, messages []Message) (map[Return]bool, error) {
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
		return nil, nil
	}
	rows, err := db.All[Return](ctx, s.db, `
		SELECT m.key, t.call_id
		FROM unnest(@keys::bigint[], @calls::text[]) AS wanted (key, call_id)
		JOIN messages m ON m.key = wanted.key AND m.org = @org
		JOIN tool_calls t ON t.conversation_key = m.conversation_key AND t.call_id = wanted.call_id
		                 AND t.result_position = m.position
		WHERE t.name = @tool`, pgx.StrictNamedArgs{"org": org, "keys": keys, "calls": calls, "tool": tool})
	found := make(map[Return]bool, len(rows))
	for _, r := range rows {
		found[r] = true
	}
	return found, err
}
