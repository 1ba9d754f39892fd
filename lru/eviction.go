package lru

import "slices"

// Evict returns the ids of the files to close so that at most limit stay open. The least recently used are closed
// first; ties go by id. It never closes a pinned file, nor a file in fresh (opened by the same call), even if more than
// limit stay. Ids in open are unique; open is not changed.
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
