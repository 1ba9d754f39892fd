package policy

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Triggers reports whether the policy says when to compact: by a step, or because its cutter may leave a view close to
// the trigger of the agent's settings. If not, that trigger does.
func (p Policy) Triggers() bool {
	return p.cuts() || slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, trigger := s.(Trigger)
		_, gate := s.(Gate)
		return trigger || gate
	})
}

// PlanAndRestore plans by the cutter of the policy, and keeps the results that its restorers show again, with their
// calls, if they fit. The summary names those that are too long for it.
func (p Policy) PlanAndRestore(v compaction.View, at Moment) (compaction.Plan, error) {
	at.steps = p.Steps
	plan, err := p.Plan(v, at)
	if err != nil || plan.Evicted == 0 {
		return plan, err
	}
	after := plan.View(v, &compaction.Summary{Tokens: plan.Budget, From: plan.From, To: plan.To})
	stays := make(map[int]bool, len(after.Messages))
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	left := slices.DeleteFunc(slices.Clone(v.Messages), func(m recall.Message) bool { return stays[m.Position] })
	var keep []int
	for _, r := range p.Restore(left, after, at) {
		i := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position == r.Position })
		switch {
		case r.Named:
			plan.Named = append(plan.Named, compaction.Named{Path: r.Source, Seq: r.Seq})
		case i >= 0:
			keep = append(keep, i)
		}
	}
	if len(keep) == 0 {
		return plan, nil
	}
	cut := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position >= plan.First })
	if cut < 0 {
		cut = len(v.Messages)
	}
	for _, position := range plan.Kept {
		keep = append(keep, slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position == position }))
	}
	slices.Sort(keep)
	all := plan.Mode == compaction.All || plan.Mode == compaction.SelfCompactAll
	again, err := planCut(v, at,
		compaction.Cut{At: cut, Keep: keep, All: all, Format: plan.Format})
	if errors.Is(err, db.ErrInvalid) || again.Evicted == 0 { // with what is restored it does not fit
		return plan, nil
	}
	if err != nil {
		return plan, err
	}
	quoted := again.Quoted
	again.Making, again.NeedsModel, again.Self = plan.Making, plan.NeedsModel, plan.Self
	again.Quoted = quoted
	return again, nil
}
