package recall

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Nameless is the name of the tool in a call in which the model wrote none.
const Nameless = "_"

// maxCalledBytes bounds the name of a tool that a model calls.
const maxCalledBytes = 200

// CalledName returns the name of the tool that a model calls as it is stored: the beginning of a long one, and Nameless
// for none.
func CalledName(name string) string {
	if strings.TrimSpace(name) == "" {
		return Nameless
	}
	return db.Beginning(name, maxCalledBytes)
}

// OpenCalls maps call id → the calls with this id that have no result, in the order of the calls. A result belongs to
// the latest of them.
type OpenCalls[C any] map[string][]C

// Add adds a call behind the others with its id.
func (o OpenCalls[C]) Add(id string, call C) { o[id] = append(o[id], call) }

// Answer removes and returns the call that a result with this id belongs to. ok is false if there is none.
func (o OpenCalls[C]) Answer(id string) (call C, ok bool) {
	last := len(o[id]) - 1
	if last < 0 {
		return call, false
	}
	if call = o[id][last]; last == 0 {
		delete(o, id) // keeps the map small in a long log
		return call, true
	}
	o[id] = o[id][:last]
	return call, true
}

// toolCall is a tool call, at the position of its message.
type toolCall struct {
	ID       string `db:"call_id"`
	Name     string `db:"name"`
	Position int    `db:"position"`
	result   *int   // position of the result; nil if there is none
	stored   bool   // stored before this append
}

// pairing pairs tool calls with their results.
type pairing struct {
	open     OpenCalls[*toolCall]
	made     []*toolCall // calls of this append
	answered []*toolCall // stored calls that this append answers
}

// pairCalls pairs tool calls with results, in entries that are appended to a conversation in this order. It marks
// results without a call as orphans, and marks entries that repeat the log.
func (s *Store) pairCalls(ctx context.Context, end conversationEnd, fresh []*entry) (*pairing, error) {
	open, err := s.openCalls(ctx, end, fresh)
	if err != nil {
		return nil, err
	}
	p := &pairing{open: open}
	for i, e := range fresh {
		position := end.Messages + 1 + i
		for n := range e.Content {
			part := &e.Content[n]
			switch part.Type {
			case ToolCall:
				if !p.call(part, position) {
					return nil, &DraftError{At: e.at, Err: db.Invalid("two calls of a tool have the id %q", db.Short(part.CallID))}
				}
			case ToolReturn:
				tool, found := p.answer(part.CallID, position)
				part.Orphan = !found
				e.tools[part.CallID] = tool
				e.repeatsLog = e.repeatsLog || repeatsLog(tool)
			}
		}
	}
	return p, nil
}

// call adds a call. It returns false if the same message already has a call with this id.
func (p *pairing) call(part *Part, position int) bool {
	before := p.open[part.CallID]
	if n := len(before); n > 0 && before[n-1].Position == position {
		return false
	}
	c := &toolCall{ID: part.CallID, Name: part.Name, Position: position}
	p.open.Add(part.CallID, c)
	p.made = append(p.made, c)
	return true
}

// answer pairs the result at a position with its call, and returns the tool's name.
func (p *pairing) answer(id string, position int) (tool string, found bool) {
	c, found := p.open.Answer(id)
	if !found {
		return "", false
	}
	if c.result = &position; c.stored {
		p.answered = append(p.answered, c)
	}
	return c.Name, true
}

// openCalls reads the stored calls that the entries may answer, as many with each id as may be needed.
func (s *Store) openCalls(ctx context.Context, end conversationEnd, fresh []*entry) (OpenCalls[*toolCall], error) {
	open := OpenCalls[*toolCall]{}
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
			FROM tool_calls t
			WHERE t.org = $1 AND t.conversation_key = $2 AND t.call_id = ANY ($3) AND t.result_position IS NULL
		) latest
		WHERE nth <= $4
		ORDER BY position`, end.org, end.Key, ids, len(ids))
	for _, r := range rows {
		r.stored = true
		open.Add(r.ID, &r)
	}
	return open, err
}

func (p *pairing) queue(batch *pgx.Batch, end conversationEnd) {
	for _, m := range p.made {
		batch.Queue(`
			INSERT INTO tool_calls (org, conversation_key, call_id, position, name, result_position)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			end.org, end.Key, m.ID, m.Position, m.Name, m.result)
	}
	for _, a := range p.answered {
		batch.Queue(`
			UPDATE tool_calls SET result_position = $5
			WHERE org = $1 AND conversation_key = $2 AND call_id = $3 AND position = $4`,
			end.org, end.Key, a.ID, a.Position, a.result)
	}
}
