package wordindex

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// maxTied is the most rows that Best returns because they may score as much as the last.
const maxTied = 400

// Best returns the keys of the n rows with the highest scores, and of further rows that may score as much as the last
// of them. No other row in a segment scores more than rest; of rows with that score, the returned ones have the lower
// keys. rest is 0 if no other row has one of the terms. If within is not nil, rows with keys outside its ranges are
// left out.
func (m *Match) Best(n int, within Ranges) (keys []int64, rest float64) {
	lowest := m.nth(n, within)
	from := max(lowest-2*float32(m.slack), math.SmallestNonzeroFloat32)
	var rows []keyScore
	var next float32
	for _, s := range m.matched {
		for r := range s.within(within) {
			if r.score >= from {
				rows = append(rows, keyScore{s.keys.at(int(r.row)), r.score})
			} else {
				next = max(next, r.score)
			}
		}
	}
	slices.SortFunc(rows, func(a, b keyScore) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key))
	})
	if next > 0 {
		rest = float64(next) + m.slack
	}
	if len(rows) > n+maxTied {
		// If there are this many, most score just as much as the n-th.
		rows, rest = rows[:n+maxTied], float64(rows[n+maxTied].score)-m.slack
	}
	keys = make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}
	return keys, rest
}

type keyScore struct {
	key   int64
	score float32
}

// nth returns the score of the n-th best row, or 0 if there are fewer rows.
func (m *Match) nth(n int, within Ranges) float32 {
	best := make(lowest, 0, n)
	for _, s := range m.matched {
		for r := range s.within(within) {
			if len(best) < n {
				heap.Push(&best, r.score)
			} else if r.score > best[0] {
				best[0] = r.score
				heap.Fix(&best, 0)
			}
		}
	}
	if len(best) < n {
		return 0
	}
	return best[0]
}

// lowest is a heap with the lowest score first.
type lowest []float32

// Len implements sort.Interface.
func (l lowest) Len() int { return len(l) }

// Less implements sort.Interface.
func (l lowest) Less(i, j int) bool { return l[i] < l[j] }

// Swap implements sort.Interface.
func (l lowest) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *lowest) Push(score any) { *l = append(*l, score.(float32)) }

// Pop implements heap.Interface.
func (l *lowest) Pop() any {
	last := len(*l) - 1
	score := (*l)[last]
	*l = (*l)[:last]
	return score
}
