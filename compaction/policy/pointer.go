package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction"
)

// repoint changes pointers that lead to no text: the message that they name left the view, or its text is no longer
// shown, or is a pointer itself. They lead to what that leads to, or say that the text is cleared.
func (run *pruning) repoint() {
	if !slices.ContainsFunc(run.view.Edits, isPointer) {
		return
	}
	type copyAt struct {
		seq  int64
		text string
	}
	copies := map[copyAt]result{}
	var all []result
	for r := range results(run.view) {
		at := copyAt{r.m.Seq, sameText(r.p)}
		if was, ok := copies[at]; !ok || !was.hasText() {
			copies[at] = r
		}
		all = append(all, r)
	}
	var changed []compaction.Edit
	saved := 0
	for _, r := range all {
		if r.edit == nil || !isPointer(*r.edit) {
			continue
		}
		now := *r.edit
		for range len(copies) + 1 { // a chain of pointers is no longer
			to, ok := copies[copyAt{now.CopySeq, sameText(r.p)}]
			if ok && to.hasText() {
				break
			}
			if !ok || !isPointer(*to.edit) || to.edit.CopySeq == now.CopySeq {
				now = r.stub(now.Step, cleared)
				break
			}
			now.CopySeq = to.edit.CopySeq
		}
		if now != *r.edit {
			now.Tokens = 0
			now, saves := run.view.Weighed(*r.m, r.edit, now)
			changed = append(changed, now)
			saved += max(saves, 0)
		}
	}
	run.add(changed, saved)
}

func isPointer(e compaction.Edit) bool { return e.Kind == compaction.Pointer }
