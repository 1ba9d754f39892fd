package lab

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/compaction/policy"
)

// Layer is what a step of a policy did in a replay.
type Layer struct {
	Step  string `json:"step"`
	Stage string `json:"stage"`

	// Fired counts edits of a step that edits, prompts before which a trigger was due or a gate waited, and compactions in
	// which a cutter, a restorer or hard_truncate acted.
	Fired  int `json:"fired"`
	Saved  int `json:"saved_tokens"`    // that left the view when the step acted; negative if it showed something again
	Hidden int `json:"hidden_evidence"` // uses of entities that were not in view because of the step
}

// bySettings names the trigger, and the sliding window, of the settings, which act where a policy has no step for it.
const bySettings = "compaction_settings"

// layersOf returns a policy's steps, in the order in which they run. A step that does not act in a replay is left out.
func layersOf(p policy.Policy) (all []Layer) {
	var mechanisms []policy.Mechanism
	for _, s := range p.Steps {
		if acts(s) {
			mechanisms = append(mechanisms, policy.Describe(s))
		}
	}
	slices.SortStableFunc(mechanisms, func(a, b policy.Mechanism) int { return int(a.Stage) - int(b.Stage) })
	for _, m := range mechanisms {
		all = append(all, Layer{Step: m.Name, Stage: m.Stage.String()})
	}
	return all
}

// acts reports whether a step acts in a replay. Some act only on what Loci itself adds to a prompt.
func acts(s policy.Step) bool {
	switch s.(type) {
	case policy.Editor, policy.Trigger, policy.Gate, policy.Cutter, policy.Restorer:
		return true
	}
	return false
}

// cutterOf returns the name of the step that compacts.
func cutterOf(p policy.Policy) string { return cmp.Or(nameIn(p, policy.Compact), bySettings) }

// nameIn returns the name of a policy's first step in a stage; empty if there is none.
func nameIn(p policy.Policy, stage policy.Stage) string {
	for _, s := range p.Steps {
		if m := policy.Describe(s); m.Stage == stage {
			return m.Name
		}
	}
	return ""
}
