package lab

import (
	"cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
)

// edited notes what the edits before a prompt saved.
func (r *Result) edited(before, after clip.View, fresh []clip.Edit) {
	if len(fresh) == 0 {
		return
	}
	for _, c := range (plan.Pruning{Edits: fresh, Before: before, After: after}).Steps() {
		l := r.layer(c.Step)
		l.Fired += c.Edits
		l.Saved += c.Tokens
	}
}

// pressed notes which triggers are due before a prompt, and which gates wait.
func (r *Replaying) pressed(at policy.Moment, due plan.Decision) {
	any := false
	at.Tokens = clip.Estimate(r.view)
	for _, s := range r.settings.Policy.Steps {
		if t, ok := s.(policy.Trigger); ok && t.Due(r.view, at) {
			r.result.layer(policy.NameOf(s)).Fired++
			any = true
		}
		if _, ok := s.(policy.Gate); ok && due.Deferred {
			r.result.layer(policy.NameOf(s)).Fired++
		}
	}
	if due.Compact && !any {
		r.result.layer(bySettings).Fired++
	}
}

// left notes the messages that a step took out of view.
func (r *Replaying) left(before, after clip.View, step string) {
	stays := make(map[int]bool, len(after.Messages))
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	for _, m := range before.Messages {
		if !stays[m.Position] {
			r.hiddenBy[m.Position] = step
		}
	}
	l := r.result.layer(step)
	l.Fired++
	l.Saved += clip.Counted(before) - clip.Counted(after)
}

// restored notes the messages that stay in a view after a compaction only because a restorer shows them again.
func (r *Replaying) restored(before clip.View, planned plan.Plan, at policy.Moment) {
	step := nameIn(r.settings.Policy, policy.Restore)
	if step == "" {
		return
	}
	plain, err := r.settings.Policy.Plan(before, at)
	if err != nil {
		return
	}
	stays := map[int]bool{}
	for _, m := range plain.View(before, nil).Messages {
		stays[m.Position] = true
	}
	after := planned.View(before, nil)
	again := 0
	for i, tokens := range clip.ShownTokens(after) {
		if !stays[after.Messages[i].Position] {
			again += tokens
		}
	}
	if again == 0 && len(planned.Named) == 0 {
		return
	}
	l := r.result.layer(step)
	l.Fired++
	l.Saved -= again
	r.result.layer(cutterOf(r.settings.Policy)).Saved += again
}

// hides returns the step because of which the newest message with an entity does not show it.
func (r *Replaying) hides(u use) string {
	position := r.session.messages[u.in[len(u.in)-1]].Position
	if step, hidden := r.hiddenBy[position]; hidden {
		return step
	}
	step := ""
	for _, e := range r.view.Edits {
		if e.Position == position {
			step = cmp.Or(e.Step, step)
		}
	}
	return cmp.Or(step, cutterOf(r.settings.Policy)) // an edit without a step is of a compaction
}
