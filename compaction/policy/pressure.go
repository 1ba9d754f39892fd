package policy

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Check decides whether a view is compacted now. state is what the last Check of the conversation returned. After a
// compaction, a trigger that counts tokens is disarmed until the view has grown by 5 % of its window. A view above the
// trigger in the settings is compacted whatever the policy's triggers say: at once if the policy has its own cutter and
// the last compaction went below that trigger, unless the fixed parts crowd the window.
func (p Policy) Check(v clip.View, at Moment, state plan.TriggerState) (plan.Decision,
	plan.TriggerState) {
	at.steps = p.Steps
	tokens := at.tokens(v)
	pressure := plan.Pressure{Tokens: tokens, Window: v.Window}
	pressure.Due, pressure.Paced = p.due(v, at)
	if limit := at.limit(v); v.Window > 0 && tokens > limit {
		pressure.Due = true
		pressure.Paced = pressure.Paced || p.cuts() && state.Base <= limit && clip.Crowding(v.Fixed, v.Window) == 0
	}
	if plan.TooLong(v) || at.Forced {
		pressure.Due, pressure.Paced = true, true
	}
	pressure.Wait = v.Open()
	for _, s := range p.Steps {
		if g, ok := s.(Gate); ok {
			past := at
			past.Tokens = 0 // count the tokens of the whole view
			wait, force := g.Wait(v, at, func(v clip.View) bool { due, _ := p.due(v, past); return due })
			pressure.Wait, pressure.ForceAt = pressure.Wait || wait, force
		}
	}
	return pressure.Decide(state)
}

// cuts reports whether the policy has a cutter that may miss the goal in the settings, that is any cutter but Slide.
func (p Policy) cuts() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, cutter := s.(Cutter)
		_, slides := s.(*Slide)
		return cutter && !slides && stageOf(s) == Compact
	})
}

// paced is a trigger that, once it was due, is not due again before the conversation has gone on.
type paced interface{ paced() }

// due reports whether any trigger is due. paces reports whether a paced trigger is due.
func (p Policy) due(v clip.View, at Moment) (due, paces bool) {
	for _, s := range p.Steps {
		if t, ok := s.(Trigger); ok && t.Due(v, at) {
			_, is := s.(paced)
			due, paces = true, paces || is
		}
	}
	return due, paces
}

// Plan says what leaves a view. It asks the policy's cutter. It uses plan.MakePlan if there is no cutter, or if the
// cutter leaves a view unchanged that is above the limit in the settings.
func (p Policy) Plan(v clip.View, at Moment) (plan.Plan, error) {
	at.steps = p.Steps
	full := v.Window > 0 && at.tokens(v) > at.limit(v)
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

// Restore says which of the messages that left are shown again: first loaded skills, also if the policy has no step for
// them, and then what its other steps show. What one step shows leaves less room for the next.
func (p Policy) Restore(left, after clip.View, at Moment) (all []Restored) {
	skills, others := Restorer(defaultSkills()), []Restorer{}
	for _, s := range p.inOrder() {
		switch r := s.(type) {
		case *RestoreSkills:
			skills = r
		case Restorer:
			others = append(others, r)
		}
	}
	for _, r := range slices.Insert(others, 0, skills) {
		for _, restored := range r.Restore(left, after, at) {
			after.Fixed += restored.Tokens
			all = append(all, restored)
		}
	}
	return all
}

// MayTruncate reports whether a policy has a step that hides messages without a summary.
func (p Policy) MayTruncate() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, cuts := s.(Cutter)
		return cuts && stageOf(s) == Truncate
	})
}

// TruncatesAt reports whether a policy hides the oldest messages of a prompt with these tokens.
func (p Policy) TruncatesAt(tokens, window int) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		t, is := s.(*HardTruncate)
		return is && window > 0 && tokens > t.most(window)
	})
}

// Truncate plans which of the oldest messages are hidden without a summary, because the view with all restored results
// is still too large. It returns a *plan.Nothing if the view is small enough, or if the policy does not truncate.
func (p Policy) Truncate(v clip.View, at Moment) (plan.Plan, error) {
	for _, s := range p.Steps {
		if c, ok := s.(Cutter); ok && stageOf(s) == Truncate {
			return c.Plan(v, at)
		}
	}
	return plan.Plan{}, &plan.Nothing{Messages: len(v.Messages), Summarized: v.Summary != nil}
}
