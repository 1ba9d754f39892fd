package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// LastShared returns the last position up to which two conversations of an agent have the same messages: one is a copy
// of the other, or both are copies of a third. It returns 0 if they share none.
func (s *Store) LastShared(ctx context.Context, org db.Org, a, b Conversation) (int, error) {
	l, err := s.lineageOf(ctx, org, a.AgentKey, true)
	if err != nil {
		return 0, err
	}
	return min(l.shared(a.Key, b.Key), a.Messages, b.Messages), nil
}
