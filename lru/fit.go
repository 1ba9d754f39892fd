package lru

import (
	"cmp"
	"slices"
)

// View is what is shown of an open file.
type View struct {
	ID     string
	Seq    int64 // event sequence of the last use
	Pinned bool  // shortened after all that are not
	Chars  int   // characters it would show
}

// Fit shortens views until together they show at most budgetChars, and returns the characters allowed to each that is shortened. The
// least recently used is shortened first, ties by id, as far as it must be but not below stubChars; then the next; pinned ones last. If
// all of them as stubs exceed the budget, stubs it is. An id is in views once; views is not changed.
func Fit(views []View, budgetChars, stubChars int) map[string]int {
	excess := -clamp(budgetChars)
	for _, v := range views {
		excess += clamp(v.Chars)
	}
	allowed := make(map[string]int)
	for _, v := range byUse(views) {
		cut := min(excess, v.Chars-clamp(stubChars))
		if cut <= 0 {
			continue
		}
		allowed[v.ID] = v.Chars - cut
		excess -= cut
	}
	return allowed
}

// byUse returns the views in the order in which they are shortened.
func byUse(views []View) []View {
	sorted := slices.Clone(views)
	slices.SortFunc(sorted, func(a, b View) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}

// rank puts pinned views last.
func rank(v View) int {
	if v.Pinned {
		return 1
	}
	return 0
}
