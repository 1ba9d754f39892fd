package policy

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Triggers reports whether the policy itself says when to compact: by a step, or because its cutter may leave a view
// close to the trigger in the agent's settings. If not, only that trigger does.
func (p Policy) Triggers() bool {
	return p.cuts() || slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, trigger := s.(Trigger)
		_, gate := s.(Gate)
		return trigger || gate
	})
}

// PlanAndRestore plans with the policy's cutter. Results that its restorers show again stay in the view with their
// calls, if they fit. The summary names those that are too long.
func (p Policy) PlanAndRestore(v clip.View, at Moment) (plan.Plan, error) {
	at.steps = p.Steps
	planned, err := p.Plan(v, at)
	if err != nil || planned.Evicted == 0 {
		return planned, err
	}
	again, hidden, err := p.restoring(planned, v, at)
	if err != nil || !hidden {
		return again, err
	}
	at.onlyFree = true
	if freely, hidden, err := p.restoring(planned, v, at); err == nil && !hidden {
		return freely, nil
	}
	return again, nil
}

// restoring returns a plan that also keeps what the restorers show again. hidden reports whether it hides a loaded
// skill for which they had room.
func (p Policy) restoring(planned plan.Plan, v clip.View, at Moment) (again plan.Plan, hidden bool, err error) {
	after := planned.View(v, &clip.Summary{Tokens: planned.Budget, From: planned.From, To: planned.To})
	stays := make(map[int]bool, len(after.Messages))
	for _, m := range after.Messages {
		stays[m.Position] = true
	}
	left := v
	left.Messages = slices.DeleteFunc(slices.Clone(v.Messages), func(m recall.Message) bool { return stays[m.Position] })
	cutView := v // with the restored results as they will be shown
	var keep []int
	restored := p.Restore(left, after, at)
	for _, r := range restored {
		i := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position == r.Position })
		switch {
		case r.Named:
			planned.Named = append(planned.Named, r.named())
		case i >= 0:
			if keep = append(keep, i); r.Cut != nil {
				cutView.Edits = clip.MergeEdits(cutView.Edits, []clip.Edit{*r.Cut})
			}
		}
	}
	if len(keep) == 0 {
		return planned, false, nil
	}
	cut := slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position >= planned.First })
	if cut < 0 {
		cut = len(v.Messages)
	}
	for _, position := range planned.Kept {
		keep = append(keep, slices.IndexFunc(v.Messages, func(m recall.Message) bool { return m.Position == position }))
	}
	slices.Sort(keep)
	all := planned.Mode == plan.All || planned.Mode == plan.SelfCompactAll
	again, err = planCut(cutView, at,
		plan.Cut{At: cut, Keep: keep, All: all, Format: planned.Format, Anyway: at.Forced})
	_, nothing := errors.AsType[*plan.Nothing](err)
	switch {
	case nothing && slices.ContainsFunc(restored, Restored.isSkill):
		return planned, false, err // better no compaction than one that only hides skills
	case errors.Is(err, db.ErrInvalid) || err == nil && again.Evicted == 0: // the restored results do not fit
		again = planned
	case err != nil:
		return planned, false, err
	default:
		quoted := again.Quoted
		again.Making, again.NeedsModel, again.Self = planned.Making, planned.NeedsModel, planned.Self
		again.Quoted = quoted
	}
	for _, r := range restored {
		if !r.Named && r.Position < again.First && !slices.Contains(again.Kept, r.Position) {
			again.Named = append(again.Named, r.named())
			hidden = hidden || r.Skill
		}
	}
	return again, hidden, nil
}

// isSkill reports whether the result is a loaded skill that is shown again.
func (r Restored) isSkill() bool { return r.Skill && !r.Named }

func (r Restored) named() prose.Named { return prose.Named{Path: r.Source, Seq: r.Seq} }
