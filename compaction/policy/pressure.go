package policy

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// Check decides whether a view is compacted now. was is what it remembers of the conversation. A trigger that counts
// tokens is disarmed after a compaction until the view has grown by 5 % of its window. A view above the trigger of the
// settings is compacted whatever the triggers say; at once if a cutter of the policy's own left it below, unless the
// fixed parts crowd the window.
func (p Policy) Check(v clip.View, at Moment, was plan.TriggerState) (plan.Decision,
	plan.TriggerState) {
	tokens := at.tokens(v)
	now := plan.Pressure{Tokens: tokens, Window: v.Window}
	now.Due, now.Paced = p.due(v, at)
	if limit := at.settings().Limit(v.Window); v.Window > 0 && tokens > limit {
		now.Due = true
		now.Paced = now.Paced || p.cuts() && was.Base <= limit && clip.Crowding(v.Fixed, v.Window) == 0
	}
	if plan.TooLong(v) || at.Forced {
		now.Due, now.Paced = true, true
	}
	now.Wait = v.Open()
	for _, s := range p.Steps {
		if g, ok := s.(Gate); ok {
			past := at
			past.Tokens = 0 // those of the whole view
			wait, force := g.Wait(v, at, func(v clip.View) bool { due, _ := p.due(v, past); return due })
			now.Wait, now.ForceAt = now.Wait || wait, force
		}
	}
	return now.Decide(was)
}

// cuts reports whether the policy has a cutter of its own: one that does not come to the goal of the settings.
func (p Policy) cuts() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, cutter := s.(Cutter)
		_, slides := s.(*Slide)
		return cutter && !slides && stageOf(s) == Compact
	})
}

// paced is a trigger that is not due again before the conversation has gone on.
type paced interface{ paced() }

// due reports whether a trigger is due, and whether one of those that pace themselves is.
func (p Policy) due(v clip.View, at Moment) (due, own bool) {
	for _, s := range p.Steps {
		if t, ok := s.(Trigger); ok && t.Due(v, at) {
			_, is := s.(paced)
			due, own = true, own || is
		}
	}
	return due, own
}

// Plan says what of a view leaves, by the cutter of the policy; by plan.MakePlan if it has none, or if it leaves
// a view as it is that is above the limit of the settings.
func (p Policy) Plan(v clip.View, at Moment) (plan.Plan, error) {
	at.steps = p.Steps
	full := v.Window > 0 && at.tokens(v) > at.settings().Limit(v.Window)
	for _, s := range p.Steps {
		if c, ok := s.(Cutter); ok && stageOf(s) == Compact {
			planned, err := c.Plan(v, at)
			if _, nothing := errors.AsType[*plan.Nothing](err); nothing && full {
				break
			}
			return planned, err
		}
	}
	return (&Slide{Mode: bySettings}).Plan(v, at)
}

// Restore says what of the messages that left is shown again.
func (p Policy) Restore(left []recall.Message, after clip.View, at Moment) (all []Restored) {
	for _, s := range p.inOrder() {
		if r, ok := s.(Restorer); ok {
			all = append(all, r.Restore(left, after, at)...)
		}
	}
	return all
}

// MayTruncate reports whether a policy has a step that cuts what no compaction makes fit.
func (p Policy) MayTruncate() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, cuts := s.(Cutter)
		return cuts && stageOf(s) == Truncate
	})
}

// Truncate says which of the oldest messages of a view are hidden without a summary because the view, with all that was
// restored, is still too large; a *plan.Nothing if it is not, or if the policy does not truncate.
func (p Policy) Truncate(v clip.View, at Moment) (plan.Plan, error) {
	for _, s := range p.Steps {
		if c, ok := s.(Cutter); ok && stageOf(s) == Truncate {
			return c.Plan(v, at)
		}
	}
	return plan.Plan{}, &plan.Nothing{Messages: len(v.Messages), Summarized: v.Summary != nil}
}
