package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Prune returns the view with the edits of all steps that are due before a prompt, and the edits that are new. An edit
// is made only if it saves tokens and shows no more of its part than the view did, and never of the user's newest
// message. Of the step that the model has not answered yet, only the stage enter edits the results. With the edits in
// the view, a second call returns none.
func (p Policy) Prune(v clip.View, at Moment) (clip.View, []clip.Edit) {
	entered := newPruning(v, at)
	entered.run(p, Enter, Enter)
	pruned := entered.next()
	pruned.run(p, Normalize, Prune)
	if gate, sent := p.gate(), sentOf(v, at); gate != nil &&
		!gate.Opens(changeOf(entered.view, pruned.view, pruned.fresh, sent), entered.view, entered.at) {
		unsent := slices.DeleteFunc(pruned.fresh, func(e clip.Edit) bool { return e.Position <= sent })
		pruned = entered.next()
		pruned.make(unsent, Prune)
	}
	pruned.repoint()
	return pruned.view, clip.MergeEdits(entered.fresh, pruned.fresh)
}

// gate returns the step that says whether a change of the prompt is worth what it costs; nil if the policy has none.
func (p Policy) gate() *ApplyIf {
	for _, s := range p.Steps {
		if gate, ok := s.(*ApplyIf); ok {
			return gate
		}
	}
	return nil
}

// pruning makes the edits of one step after the other.
type pruning struct {
	view  clip.View
	at    Moment
	fresh []clip.Edit

	user       int // position of the user's newest message
	unanswered [2]int
}

func newPruning(v clip.View, at Moment) *pruning {
	run := &pruning{view: v, at: at}
	run.at.usage = &usage{}
	run.unanswered[0], run.unanswered[1] = v.Unanswered()
	for _, m := range v.Messages {
		if m.Role == recall.User {
			run.user = m.Position
		}
	}
	return run
}

// next returns a pruning of the same view that has no new edits yet.
func (run *pruning) next() *pruning {
	next := *run
	next.fresh, next.at.usage = nil, &usage{}
	*next.at.usage = *run.at.usage
	return &next
}

// run makes the edits of a policy's steps of some stages.
func (run *pruning) run(p Policy, from, to Stage) {
	for _, s := range p.inOrder() {
		if e, ok := s.(Editor); ok && stageOf(s) >= from && stageOf(s) <= to {
			run.make(e.Edits(run.view, run.at), stageOf(s))
		}
	}
}

// make adds those edits of a stage to the view that are allowed and save tokens.
func (run *pruning) make(edits []clip.Edit, stage Stage) {
	if len(edits) == 0 {
		return
	}
	was := editsOf(run.view)
	saved := 0
	made := make([]clip.Edit, 0, len(edits))
	for _, e := range edits {
		i, ok := messageAt(run.view, e.Position)
		if !ok || e.Position == run.user || stage != Enter && i >= run.unanswered[0] && i < run.unanswered[1] {
			continue
		}
		e, saves := run.view.Weighed(run.view.Messages[i], was[place{e.Position, e.Part}], e)
		if saves > 0 {
			made = append(made, e)
			saved += saves
		}
	}
	run.add(made, saved)
}

// add adds edits to the view.
func (run *pruning) add(edits []clip.Edit, saved int) {
	run.view.Edits = clip.MergeEdits(run.view.Edits, edits)
	run.fresh = clip.MergeEdits(run.fresh, edits)
	if u := run.view.Usage; u != nil && saved > 0 {
		run.view.Usage = &clip.Usage{PromptTokens: max(u.PromptTokens-saved, 1), Position: u.Position}
	}
	run.at.usage.tokens = max(run.at.usage.tokens-saved, 0)
}

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
	var changed []clip.Edit
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
