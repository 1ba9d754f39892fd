package lru

import "slices"

// Evict returns the ids of the files to close so that at most limit stay open: the least recently used first, ties by
// id. It closes neither a pinned file nor one in fresh, the ids that the same call opened, even if more than limit
// stay. Ids in open are unique; open is not changed.
func Evict(open []File, limit int, fresh map[string]bool) []string {
	closable := slices.DeleteFunc(slices.Clone(open), func(f File) bool { return f.Pinned || fresh[f.ID] })
	slices.SortFunc(closable, byUse)
	excess := min(len(open)-max(limit, 0), len(closable))
	var ids []string
	for i := range excess {
		ids = append(ids, closable[i].ID)
	}
	return ids
}
