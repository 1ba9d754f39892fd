package recall

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// lineage maps a conversation's key to its branch. It says which conversations are forks, and where they were forked.
type lineage map[int64]branch

// branch is a conversation. If From is not nil, the messages up to position To are copies of messages in conversation
// From.
type branch struct {
	Key  int64  `db:"key"`
	From *int64 `db:"forked_from"`
	To   int    `db:"forked_to"`
	Gone bool   `db:"gone"` // it was deleted

	Delegated bool `db:"delegated"` // a sub-agent works in it
}

// lineageOf reads the lineage of an agent's conversations; agent 0 is the whole organization. With withReset,
// conversations that Reset hid are not gone.
func (s *Store) lineageOf(ctx context.Context, org db.Org, agent int64, withReset bool) (lineage, error) {
	rows, err := db.All[branch](ctx, s.db, `
		WITH forks AS (
			SELECT key, forked_from FROM conversations
			WHERE org = @org AND (@agent = 0 OR agent_key = @agent) AND forked_from IS NOT NULL
		)
		SELECT key, forked_from, forked_to, deleted_at IS NOT NULL AND NOT (@reset AND reset_at IS NOT NULL) AS gone,
		       delegated
		FROM conversations
		WHERE org = @org AND key IN (SELECT key FROM forks UNION SELECT forked_from FROM forks)`,
		pgx.StrictNamedArgs{"org": org, "agent": agent, "reset": withReset})
	l := make(lineage, len(rows))
	for _, b := range rows {
		l[b.Key] = b
	}
	return l, err
}

// hideOthers makes the conversations gone that are not in a scope. Their messages are then read from copies that are.
func (s *Store) hideOthers(ctx context.Context, org db.Org, l lineage, users db.UserScope) error {
	if users.All() || len(l) == 0 {
		return nil
	}
	args := pgx.StrictNamedArgs{"org": org, "keys": slices.Collect(maps.Keys(l))}
	others, err := db.All[int64](ctx, s.db, `
		SELECT c.key FROM conversations c
		WHERE c.org = @org AND c.key = ANY (@keys) AND NOT (`+users.Where(UserOf, args)+`)`, args)
	for _, key := range others {
		b := l[key]
		b.Gone = true
		l[key] = b
	}
	return err
}

// path yields a conversation and then its ancestors, the nearest first. With each comes the last position up to which
// both have the same messages.
func (l lineage) path(key int64) iter.Seq2[int64, int] {
	return func(yield func(int64, int) bool) {
		for to := math.MaxInt32; yield(key, to); {
			b := l[key]
			if b.From == nil {
				return
			}
			key, to = *b.From, min(to, b.To)
		}
	}
}

// shared returns the last position up to which two conversations have the same messages; 0 if they share none.
func (l lineage) shared(a, b int64) int {
	ends := maps.Collect(l.path(a))
	for key, to := range l.path(b) {
		if end, common := ends[key]; common {
			return min(end, to)
		}
	}
	return 0
}

// live returns the conversations that are not gone, the oldest first. If first is one of them, it comes before all
// others.
func (l lineage) live(first int64) (keys []int64) {
	for key, b := range l {
		if !b.Gone {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b int64) int {
		switch first {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return keys
}

// repeats finds conversations that begin with copied messages which another conversation has too. keys are these
// conversations, and ends the positions of the last copied messages. Each message is left to only one conversation: to
// first if it has the message, otherwise to the oldest one that has it.
func (l lineage) repeats(first int64) (keys []int64, ends []int) {
	held := map[int64]int{} // for each ancestor, up to which position earlier conversations hold its messages
	for _, key := range l.live(first) {
		end := 0
		for ancestor, to := range l.path(key) {
			end = max(end, min(to, held[ancestor]))
			held[ancestor] = max(held[ancestor], to)
		}
		if end > 0 {
			keys, ends = append(keys, key), append(ends, end)
		}
	}
	return keys, ends
}

// heir returns the live conversation that shares the most messages with another one, which may be gone. position is
// that of the last shared message; 0 if no conversation shares any. If within is not 0, only that conversation is
// considered.
func (l lineage) heir(gone, within int64) (key int64, end int) {
	for _, other := range l.live(within) {
		if shared := l.shared(gone, other); shared > end && (within == 0 || other == within) {
			key, end = other, shared
		}
	}
	return key, end
}
