package recall

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Expansion is a part of a long tool result, or of the text of messages.
type Expansion struct {
	ID         string `json:"id"`
	Offset     int    `json:"offset"`      // of Text, in bytes
	Text       string `json:"text"`        // the original bytes, whole characters
	NextOffset *int   `json:"next_offset"` // nil at the end
	TotalBytes int    `json:"total_bytes"`
	Lines      []Line `json:"lines,omitzero"` // those that the pattern matches; Text is empty then
	InLine     bool   `json:"-"`              // Text is of a range, and begins within a line of it
}

// Line is a line of an expanded text. Offsets are in bytes from the text's beginning.
type Line struct {
	Number int    `json:"line"`   // from 1
	Offset int    `json:"offset"` // of its beginning
	Match  int    `json:"match"`  // of the first match
	Text   string `json:"text"`   // at most the limit's bytes of it
}

// Limits of an expansion.
const (
	ExpandBytes     = 16_000 // the default
	MaxExpandBytes  = 1 << 20
	MaxExpandLines  = 200
	maxPatternBytes = 1_000
)

// Expand returns at most q.Limit bytes of a text from q.Offset on, and at least one character. With a pattern, it
// returns the matching lines from q.Offset on instead, as many as the limit allows. A message's text is that of its
// Text, with its long results whole. It returns ErrNotFound if the agent has no such text.
func (s *Store) Expand(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (Expansion, error) {
	limit, offset := cmp.Or(q.Limit, ExpandBytes), q.Offset
	if limit < 1 || limit > MaxExpandBytes {
		return Expansion{}, db.Invalid("limit is %d; it must be from 1 to %d bytes", limit, MaxExpandBytes)
	}
	lines, err := linesOf(q.Pattern)
	if err != nil {
		return Expansion{}, err
	}
	t, err := s.expandable(ctx, org, agentID, q, maxSeqRangeBytes)
	if err != nil {
		return Expansion{}, err
	}
	release, err := s.hold(ctx, org, t)
	if err != nil {
		return Expansion{}, err
	}
	defer release()
	e := stretch{offset: offset, limit: limit, Expansion: Expansion{ID: q.ID, Offset: offset}}
	for piece, err := range t.pieces {
		if err == nil {
			err = e.add(ctx, piece, lines)
		}
		if err != nil {
			return Expansion{}, err
		}
	}
	if offset < 0 || offset > e.TotalBytes {
		return Expansion{}, db.Invalid("offset is %d; the text has %d bytes", offset, e.TotalBytes)
	}
	if lines == nil {
		_, isRange := parseSeqRange(q.ID)
		e.cut(isRange)
	}
	return e.Expansion, nil
}

// messageAt returns the id of a message by its seq, or of a copy of it if it is gone. It is in a conversation, unless
// that is empty.
func (s *Store) messageAt(ctx context.Context, org db.Org, agentID string, seq int64, within string) (id string,
	err error) {
	id, err = db.One[string](ctx, s.db, `
		SELECT 'message-' || m.id FROM `+messageTables+`
		WHERE m.org = @org AND a.id = @agent AND m.seq = @seq AND `+inConversation,
		pgx.StrictNamedArgs{"org": org, "agent": agentID, "seq": seq, "within": within})
	if !isNotFound(err) {
		return id, err
	}
	source, err := s.rangeSource(ctx, org, agentID, seqRange{from: seq, to: seq, conversation: within})
	if err == nil {
		id, err = db.One[string](ctx, s.db, `
			SELECT 'message-' || m.id FROM messages m JOIN messages o ON o.org = m.org AND o.position = m.position
			WHERE m.org = $1 AND m.conversation_key = $2
			  AND o.org = $1 AND o.agent_key = $3 AND o.conversation_key = $4 AND o.seq = $5`,
			org, source.Read, source.agent, source.Named, seq)
	}
	return id, messageError(err, fmt.Sprint(seq))
}
