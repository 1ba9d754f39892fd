package recall

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/wasilibs/go-re2"

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
	text, err := s.expandable(ctx, org, agentID, q)
	if err != nil {
		return Expansion{}, err
	}
	if offset < 0 || offset > len(text) {
		return Expansion{}, db.Invalid("offset is %d; the text has %d bytes", offset, len(text))
	}
	offset = len(db.Beginning(text, offset))
	e := Expansion{ID: q.ID, Offset: offset, TotalBytes: len(text)}
	if q.Pattern != "" {
		return e.matching(text, limit, q.Pattern)
	}
	e.Text = db.Beginning(text[offset:], limit)
	if _, isRange := parseSeqRange(q.ID); isRange {
		e.InLine = offset > 0 && text[offset-1] != '\n'
		if offset+len(e.Text) < len(text) { // the next page begins with a line, not after its indentation
			e.Text = e.Text[:cmp.Or(strings.LastIndexByte(e.Text, '\n')+1, len(e.Text))]
		}
	}
	if e.Text == "" && offset < len(text) { // the first character is longer than the limit
		_, size := utf8.DecodeRuneInString(text[offset:])
		e.Text = text[offset : offset+size]
	}
	if end := offset + len(e.Text); end < len(text) {
		e.NextOffset = &end
	}
	return e, nil
}

// Whole returns the whole text that a query names. ErrNotFound if the agent has no such text.
func (s *Store) Whole(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (string, error) {
	return s.expandable(ctx, org, agentID, q)
}

// expandable reads the whole text of an agent that a query names.
func (s *Store) expandable(ctx context.Context, org db.Org, agentID string, q ExpandQuery) (string, error) {
	if r, ok := parseSeqRange(q.ID); ok {
		r.conversation = q.Conversation
		return s.seqRangeText(ctx, org, agentID, r)
	}
	if seq, err := strconv.ParseInt(q.ID, 10, 64); err == nil {
		if q.ID, err = s.messageAt(ctx, org, agentID, seq, q.Conversation); err != nil {
			return "", err
		}
	}
	if strings.HasPrefix(q.ID, "message-") {
		found, err := s.Neighbors(ctx, org,
			NeighborQuery{AgentID: agentID, MessageID: q.ID, Conversation: q.Conversation})
		if err != nil {
			return "", err
		}
		whole, err := s.whole(ctx, org, found.Messages[found.At:found.At+1])
		return whole[0].Text(), err
	}
	return s.longResult(ctx, org, agentID, q)
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

// matching returns the expansion with the lines of text that match a pattern.
func (e Expansion) matching(text string, limit int, pattern string) (Expansion, error) {
	if len(pattern) > maxPatternBytes {
		return Expansion{}, db.Invalid("the pattern has %d bytes; it may have at most %d", len(pattern), maxPatternBytes)
	}
	regex, err := re2.Compile(pattern)
	if err != nil {
		return Expansion{}, db.Invalid("the pattern is not a regular expression that RE2 knows: %v", err)
	}
	e.Lines = []Line{}
	number := 1 + strings.Count(text[:e.Offset], "\n")
	shown := 0 // bytes of the lines so far
	for at := e.Offset; at < len(text); number++ {
		line, _, _ := strings.Cut(text[at:], "\n")
		if found := regex.FindStringIndex(line); found != nil {
			if len(e.Lines) == MaxExpandLines || shown > 0 && shown+len(line) > limit {
				e.NextOffset = &at
				return e, nil
			}
			shown += len(line)
			e.Lines = append(e.Lines, Line{Number: number, Offset: at, Match: at + found[0], Text: db.Beginning(line, limit)})
		}
		at += len(line) + 1
	}
	return e, nil
}
