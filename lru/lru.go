// Package lru decides which open files stay open, and how much of each is shown.
//
// It is pure: the caller says what is open and when it was used last. Use is ordered by event sequence, never by a
// clock.
//
// Each file uses those that are named before it: lru.go orders open files by their use, eviction.go chooses what
// closes, and fit.go how much is shown.
package lru

import "cmp"

// File is an open file.
type File struct {
	ID     string
	Seq    int64 // event sequence of the last use
	Pinned bool  // never closed, and shortened after all that are not pinned
	Chars  int   // characters that it shows in full
}

// byUse orders files by their last use, ties by id.
func byUse(a, b File) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) }
