package lab

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
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

// restored notes the messages that stay in a view after a compaction only because restorers show them again.
func (r *Replaying) restored(before clip.View, planned plan.Plan, at policy.Moment) {
	if nameIn(r.settings.Policy, policy.Restore) == "" && !r.session.loadsSkills {
		return
	}
	plain, err := r.settings.Policy.Plan(before, at)
	if err != nil {
		return
	}
	after := plain.View(before, &clip.Summary{Tokens: plain.Budget, From: plain.From, To: plain.To})
	stays := map[int]bool{}
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	left := before
	left.Messages = slices.DeleteFunc(slices.Clone(before.Messages),
		func(m recall.Message) bool { return stays[m.Position] })
	by := map[int]string{} // position of a restored result, and of its call → the step
	fired := map[string]bool{}
	for _, s := range restorersOf(r.settings.Policy) {
		name := policy.NameOf(s)
		for _, restored := range s.Restore(left, after, at) {
			if by[restored.Position] == "" {
				by[restored.Position] = name
			}
			fired[name] = fired[name] || restored.Named && len(planned.Named) > 0
		}
	}
	shown := planned.View(before, nil)
	step := ""
	for i, tokens := range slices.Backward(clip.ShownTokens(shown)) { // a call stands before its result
		m := shown.Messages[i]
		if stays[m.Position] {
			continue
		}
		if step = cmp.Or(by[m.Position], step); step == "" {
			continue
		}
		fired[step] = true
		r.result.layer(step).Saved -= tokens
		r.result.layer(cutterOf(r.settings.Policy)).Saved += tokens
	}
	for name, is := range fired {
		if is {
			r.result.layer(name).Fired++
		}
	}
}

// restorersOf returns the steps that show results again. A policy without restore_skills works as if it had that.
func restorersOf(p policy.Policy) (all []policy.Restorer) {
	skills := false
	for _, s := range p.Steps {
		if r, ok := s.(policy.Restorer); ok {
			_, is := s.(*policy.RestoreSkills)
			all, skills = append(all, r), skills || is
		}
	}
	if !skills {
		all = append(all, &policy.RestoreSkills{MaxSkillTokens: 5_000, MaxTotalTokens: 25_000})
	}
	return all
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
