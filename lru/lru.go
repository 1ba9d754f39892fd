// Package lru decides which open files stay open, and how much of each is shown.
//
// It is pure: the caller passes the open files and when each was used last. Use is ordered by event sequence, never by
// a clock.
//
// Each file uses only the files named before it: lru.go orders open files by their use, eviction.go chooses which to
// close, and fit.go how much to show.
package lru

import "cmp"

// File is an open file.
type File struct {
	ID     string
	Seq    int64 // event sequence of the last use
	Pinned bool  // never closed; shortened only after all files that are not pinned
	Chars  int   // length of the file's full view
}

// byUse orders files by their last use, ties by id.
func byUse(a, b File) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) }
