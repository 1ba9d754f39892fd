package policy

import "slices"

// Prunes reports whether a step of the policy may edit views before prompts.
func (p Policy) Prunes() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		_, ok := s.(Editor)
		return ok && stageOf(s) < Pressure
	})
}

// inOrder returns the steps in the order in which they run.
func (p Policy) inOrder() []Step {
	steps := slices.Clone(p.Steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return int(stageOf(a)) - int(stageOf(b)) })
	return steps
}
