package lru

import "slices"

// Fit shortens files until together they show at most budgetChars, and returns the characters allowed to each that it
// shortens. It shortens the least recently used first, ties by id, as far as needed but not below stubChars; then the
// next; pinned ones last. If even stubs of all exceed the budget, all are stubs. Ids are unique; open is not changed.
func Fit(open []File, budgetChars, stubChars int) map[string]int {
	excess := -max(budgetChars, 0)
	for _, f := range open {
		excess += max(f.Chars, 0)
	}
	allowed := make(map[string]int)
	for _, f := range slices.SortedFunc(slices.Values(open), pinnedLast) {
		cut := min(excess, f.Chars-max(stubChars, 0))
		if cut <= 0 {
			continue
		}
		allowed[f.ID] = f.Chars - cut
		excess -= cut
	}
	return allowed
}

// pinnedLast orders files by their last use, pinned ones after all others.
func pinnedLast(a, b File) int {
	if a.Pinned == b.Pinned {
		return byUse(a, b)
	}
	if a.Pinned {
		return 1
	}
	return -1
}
