package lru

import "slices"

// Fit shortens files until together they show at most budgetChars. It maps the id of each shortened file to the
// characters that it may show. The least recently used are shortened first (ties go by id), pinned files last, and no
// file below stubChars. If all stubs together exceed the budget, every file is a stub. Ids are unique; open is not
// changed.
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

// pinnedLast orders files by their last use, and pinned files after all others.
func pinnedLast(a, b File) int {
	if a.Pinned == b.Pinned {
		return byUse(a, b)
	}
	if a.Pinned {
		return 1
	}
	return -1
}
