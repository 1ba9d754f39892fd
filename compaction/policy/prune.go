package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Prune applies the edits of all steps that are due before a prompt. It returns the view with these edits, and the new
// edits. An edit must save tokens, must not show more of its part than before, and must not be of the user's newest
// message or of a loaded skill. The newest results, which the model has not answered yet, are only edited by the stage
// enter. A second call on the returned view returns no new edits.
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

// gate returns the step that decides whether a change of the prompt is worth its cost; nil if the policy has none.
func (p Policy) gate() *ApplyIf {
	for _, s := range p.Steps {
		if gate, ok := s.(*ApplyIf); ok {
			return gate
		}
	}
	return nil
}

// ContextManagement returns the field context_management of a request in Anthropic's form: the steps that the provider
// carries out. It returns nil if there are none. tools are the names of the prompt's tools, and window its tokens.
func (p Policy) ContextManagement(tools []string, window int) map[string]any {
	var edits []map[string]any
	for _, s := range p.inOrder() {
		if s, ok := s.(byProvider); ok {
			if edit := s.edit(tools, window); edit != nil {
				edits = append(edits, edit)
			}
		}
	}
	if edits == nil {
		return nil
	}
	return map[string]any{"edits": edits}
}

// pruning is a view that takes the edits of one step after the other.
type pruning struct {
	view  clip.View
	at    Moment
	fresh []clip.Edit

	user       int // position of the user's newest message
	unanswered [2]int
	skills     map[place]bool // results that load skills
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
	for r := range results(v) {
		if skillOf(r) == "" {
			continue
		}
		if run.skills == nil {
			run.skills = map[place]bool{}
		}
		run.skills[r.place()] = true
	}
	return run
}

// next returns a pruning of the same view without new edits.
func (run *pruning) next() *pruning {
	next := *run
	next.fresh, next.at.usage = nil, &usage{}
	*next.at.usage = *run.at.usage
	return &next
}

// run makes the edits of the policy's steps in the stages from … to.
func (run *pruning) run(p Policy, from, to Stage) {
	for _, s := range p.inOrder() {
		if e, ok := s.(Editor); ok && stageOf(s) >= from && stageOf(s) <= to {
			run.make(e.Edits(run.view, run.at), stageOf(s))
		}
	}
}

// make adds a stage's edits to the view, if they are allowed and save tokens.
func (run *pruning) make(edits []clip.Edit, stage Stage) {
	if len(edits) == 0 {
		return
	}
	edited := editsOf(run.view)
	saved := 0
	accepted := make([]clip.Edit, 0, len(edits))
	for _, e := range edits {
		i, ok := messageAt(run.view, e.Position)
		if !ok || e.Position == run.user || run.skills[place{e.Position, e.Part}] ||
			stage != Enter && i >= run.unanswered[0] && i < run.unanswered[1] {
			continue
		}
		e, saves := run.view.Weighed(run.view.Messages[i], edited[place{e.Position, e.Part}], e)
		if saves > 0 {
			accepted = append(accepted, e)
			saved += saves
		}
	}
	run.add(accepted, saved)
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

// repoint changes pointers that no longer lead to text, because the message that they name has left the view, or shows
// no text, or is a pointer itself. A pointer to a pointer takes over its target; any other says that its text is
// cleared.
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
		pointer := *r.edit
		for range len(copies) + 1 { // no chain of pointers is longer
			to, ok := copies[copyAt{pointer.CopySeq, sameText(r.p)}]
			if ok && to.hasText() {
				break
			}
			if !ok || !isPointer(*to.edit) || to.edit.CopySeq == pointer.CopySeq {
				pointer = r.stub(pointer.Step, cleared)
				break
			}
			pointer.CopySeq = to.edit.CopySeq
		}
		if pointer != *r.edit {
			pointer.Tokens = 0
			pointer, saves := run.view.Weighed(*r.m, r.edit, pointer)
			changed = append(changed, pointer)
			saved += max(saves, 0)
		}
	}
	run.add(changed, saved)
}
