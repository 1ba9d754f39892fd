package lab

import (
	"fmt"
	"strings"
)

// NeverFired returns the names of the steps that never did anything.
func (r Result) NeverFired() (steps []string) {
	for _, l := range r.Layers {
		if l.Fired == 0 {
			steps = append(steps, l.Step)
		}
	}
	return steps
}

// Fired returns the names of the steps that did something.
func (r Result) Fired() (steps []string) {
	for _, l := range r.Layers {
		if l.Fired > 0 {
			steps = append(steps, l.Step)
		}
	}
	return steps
}

// After is a session's last prompt after a layer, and after those before it.
type After struct {
	Step   string  `json:"step"`
	Tokens int     `json:"tokens"`
	InView float64 `json:"in_view_share"` // of all uses, what the layers up to this one left in view
}

// Chain returns the tokens of the last prompt if it showed everything, and after each layer that took something out of
// view, with the share of the evidence in view: how much each layer saves, and what that costs.
func (r Result) Chain() (all []After) {
	all = append(all, After{Tokens: r.Whole, InView: 1})
	tokens, hidden := r.Whole, 0
	for _, l := range r.Layers {
		if l.Saved == 0 && l.Hidden == 0 {
			continue
		}
		tokens -= l.Saved
		hidden += l.Hidden
		after := After{l.Step, tokens, 1 - float64(hidden)/float64(max(r.Evidence.Total(), 1))}
		if last := &all[len(all)-1]; l.Saved < 0 && len(all) > 1 { // it showed again what the layer before had hidden
			after.Step = last.Step + " and " + after.Step
			*last = after
			continue
		}
		all = append(all, after)
	}
	return all
}

// ChainText writes Chain: "16504 → snip 14100 (100.0 %) → one_line 12461 (97.2 %)".
func (r Result) ChainText() string {
	var b strings.Builder
	for i, after := range r.Chain() {
		if i == 0 {
			fmt.Fprint(&b, after.Tokens)
			continue
		}
		fmt.Fprintf(&b, " → %s %d (%.1f %%)", after.Step, after.Tokens, 100*after.InView)
	}
	return b.String()
}
