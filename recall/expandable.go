package recall

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
)

// A text that is expanded may be far larger than what is shown of it. Those that are read at the same time share a
// bound; what they take of memory is about three times as much.
const (
	maxWholeBytes = 16 << 20 // of a text that is read as a whole
	freeTextBytes = 1 << 20  // a text with fewer is not counted
	allTextBytes  = 32 << 20 // of those that are read
)

// text is a text to expand. It is read while its pieces are ranged over.
type text struct {
	bytes  int64                    // about; what is stored of it
	pieces iter.Seq2[string, error] // of whole lines, but for a text's only piece; the first error is the last piece
}

// onePiece returns a text that is read at once.
func onePiece(bytes int64, read func() (string, error)) text {
	return text{bytes: bytes, pieces: func(yield func(string, error) bool) { yield(read()) }}
}

// hold waits until a text may be read. The caller calls release when it has what it needs of the text.
func (s *Store) hold(ctx context.Context, org db.Org, t text) (release func(), err error) {
	if t.bytes <= freeTextBytes {
		return func() {}, nil
	}
	bytes := min(t.bytes, maxWholeBytes)
	if err := s.texts.Take(ctx, org, bytes); err != nil {
		return nil, err
	}
	return func() { s.texts.Give(org, bytes) }, nil
}

// Whole calls use with the whole text that a query names. ErrNotFound if the agent has no such text, and ErrInvalid if
// it has more than 16 MiB. Other texts may have to wait while use runs.
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

// whole returns the text. Of one that has more pieces than one, it refuses more than maxWholeBytes.
func (t text) whole() (string, error) {
	var first string
	var b strings.Builder
	for piece, err := range t.pieces {
		switch {
		case err != nil:
			return "", err
		case first == "":
			first = piece
			continue
		case b.Len() == 0:
			b.Grow(int(t.bytes) + len(first))
			b.WriteString(first)
		}
		if b.Len()+len(piece) > maxWholeBytes {
			return "", db.Invalid("the text of the range has more than %d bytes: ask for a part of it", maxWholeBytes)
		}
		b.WriteString(piece)
	}
	if b.Len() == 0 {
		return first, nil
	}
	return b.String(), nil
}

// expandable returns the text of an agent that a query names. A range of the log may have at most most bytes.
func (s *Store) expandable(ctx context.Context, org db.Org, agentID string, q ExpandQuery, most int64) (text, error) {
	if r, ok := parseSeqRange(q.ID); ok {
		r.conversation = q.Conversation
		return s.seqRangeText(ctx, org, agentID, r, most)
	}
	if seq, err := strconv.ParseInt(q.ID, 10, 64); err == nil {
		if q.ID, err = s.messageAt(ctx, org, agentID, seq, q.Conversation); err != nil {
			return text{}, err
		}
	}
	if !strings.HasPrefix(q.ID, "message-") {
		return s.longResult(ctx, org, agentID, q)
	}
	found, err := s.Neighbors(ctx, org, NeighborQuery{AgentID: agentID, MessageID: q.ID, Conversation: q.Conversation})
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
