package wordindex

import (
	"slices"
	"sync"
)

// workspace is memory for the scores of a search. It is pooled, because otherwise it would be half of the bytes that a
// search allocates.
type workspace struct {
	scores []float32  // of the rows of one segment
	rows   []rowScore // of all segments
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// borrow returns a workspace without rows.
func borrow() *workspace {
	w := workspaces.Get().(*workspace)
	w.rows = w.rows[:0]
	return w
}

// noScores returns the scores of a segment of n rows, all 0. The next call overwrites them.
func (w *workspace) noScores(n int) []float32 {
	w.scores = slices.Grow(w.scores[:0], n)[:n]
	clear(w.scores)
	return w.scores
}

// scored returns the rows with a score above 0: at most the given number.
func (w *workspace) scored(scores []float32, most int) []rowScore {
	rows := slices.Grow(w.rows, most+1)
	n := len(rows)
	w.rows = rows[:n]
	rows = rows[n : n+most+1]
	found := 0
	for row, score := range scores { // without a branch, which would often be predicted wrong
		rows[found] = rowScore{int32(row), score} //nolint:gosec // rows have 16 bits
		if score > 0 {
			found++
		}
	}
	w.rows = w.rows[:n+found]
	return rows[:found:found]
}
