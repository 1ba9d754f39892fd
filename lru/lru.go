// Package lru decides which open files stay open, and how much of them is shown.
//
// It is pure: what is open, and when it was used last, comes from the caller; use is ordered by event sequence, never by a clock.
package lru

import (
	"cmp"
	"slices"
)

// Entry is an open file.
type Entry struct {
	ID     string
	Seq    int64 // event sequence of the last use
	Pinned bool  // never closed
}

// Evict returns the ids to close so that at most max stay open: the least recently used first, ties by id. It closes neither a pinned
// file nor one in fresh, the ids that the same call opened, even if more than max stay. An id is in open once; open is not changed.
func Evict(open []Entry, max int, fresh map[string]bool) []string {
	var closable []Entry
	for _, e := range open {
		if !e.Pinned && !fresh[e.ID] {
			closable = append(closable, e)
		}
	}
	slices.SortFunc(closable, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	excess := min(len(open)-clamp(max), len(closable))
	var ids []string
	for i := range excess {
		ids = append(ids, closable[i].ID)
	}
	return ids
}

// clamp takes a negative number as 0.
func clamp(n int) int { return max(n, 0) }
