package recall

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Expansion is a part of a long tool result, or of the text of one or more messages.
type Expansion struct {
	ID         string `json:"id"`
	Offset     int    `json:"offset"`      // where Text begins, in bytes
	Text       string `json:"text"`        // the original bytes; whole characters
	NextOffset *int   `json:"next_offset"` // nil at the end
	TotalBytes int    `json:"total_bytes"`
	Lines      []Line `json:"lines,omitzero"` // the lines that match the pattern; Text is empty then
	InLine     bool   `json:"-"`              // Text begins within a line of a range of messages
}

// Line is a line of an expanded text. Its offsets are bytes from the beginning of the text.
type Line struct {
	Number int    `json:"line"`   // from 1
	Offset int    `json:"offset"` // where the line begins
	Match  int    `json:"match"`  // where the first match begins
	Text   string `json:"text"`   // the line, cut at the limit
}

// Limits of an expansion.
const (
	ExpandBytes     = 16_000 // the default
	MaxExpandBytes  = 1 << 20
	MaxExpandLines  = 200
	maxPatternBytes = 1_000
)

// Expand returns a text from q.Offset on, at most q.Limit bytes of it but at least one character. With a pattern it
// returns instead the matching lines from q.Offset on, as many as the limit allows. A message's text is Message.Text
// with the long results whole. ErrNotFound if the agent has no such text.
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
	e := expander{offset: offset, limit: limit, Expansion: Expansion{ID: q.ID, Offset: offset}}
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

// Whole calls use with the whole text that a query names. ErrNotFound if the agent has no such text, ErrInvalid if the
// text is longer than 16 MiB. Other texts may have to wait while use runs.
func (s *Store) Whole(ctx context.Context, org db.Org, agentID string, q ExpandQuery, use func(string) error) error {
	t, err := s.expandable(ctx, org, agentID, q, maxWholeBytes)
	if err != nil {
		return err
	}
	release, err := s.hold(ctx, org, t)
	if err != nil {
		return err
	}
	defer release()
	whole, err := t.whole()
	if err != nil {
		return err
	}
	return use(whole)
}

// expandable returns the agent's text that a query names. A range of the log may have at most maxBytes bytes.
func (s *Store) expandable(ctx context.Context, org db.Org, agentID string, q ExpandQuery,
	maxBytes int64) (text, error) {
	if r, ok := parseSeqRange(q.ID); ok {
		r.Reach = q.Reach
		return s.seqRangeText(ctx, org, agentID, r, maxBytes)
	}
	if seq, err := strconv.ParseInt(q.ID, 10, 64); err == nil {
		if q.ID, err = s.messageAt(ctx, org, agentID, seq, q.Reach); err != nil {
			return text{}, err
		}
	}
	if !strings.HasPrefix(q.ID, "message-") {
		return s.longResult(ctx, org, agentID, q)
	}
	found, err := s.Neighbors(ctx, org, NeighborQuery{AgentID: agentID, MessageID: q.ID, Reach: q.Reach})
	if err != nil {
		return text{}, err
	}
	m := found.Messages[found.At : found.At+1]
	return onePiece(int64(m[0].clipBytes()+len(m[0].Text())), func() (string, error) {
		whole, err := s.whole(ctx, org, m)
		if err != nil {
			return "", err
		}
		return whole[0].Text(), nil
	}), nil
}

// messageAt returns the id of the message with this seq within a reach. If that message is gone, it returns the id of a
// copy.
func (s *Store) messageAt(ctx context.Context, org db.Org, agentID string, seq int64, within Reach) (id string,
	err error) {
	args := pgx.StrictNamedArgs{"org": org, "agent": agentID, "seq": seq}
	id, err = db.One[string](ctx, s.db, `
		SELECT 'message-' || m.id FROM `+messageTables+`
		WHERE m.org = @org AND a.id = @agent AND m.seq = @seq AND `+within.where(args), args)
	if !isNotFound(err) {
		return id, err
	}
	source, err := s.rangeSource(ctx, org, agentID, seqRange{from: seq, to: seq, Reach: within})
	if err == nil {
		id, err = db.One[string](ctx, s.db, `
			SELECT 'message-' || m.id FROM messages m JOIN messages o ON o.org = m.org AND o.position = m.position
			WHERE m.org = $1 AND m.conversation_key = $2
			  AND o.org = $1 AND o.agent_key = $3 AND o.conversation_key = $4 AND o.seq = $5`,
			org, source.Read, source.agent, source.Named, seq)
	}
	return id, messageError(err, fmt.Sprint(seq))
}
