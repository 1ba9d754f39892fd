package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// Slide compacts as Letta does: a share of the messages leaves, the oldest first, and 10 percent more until the rest
// reaches a goal.
type Slide struct {
	Mode       SlideMode `json:"mode" doc:"What leaves, and who summarizes; settings: as compaction_settings say."`
	EvictShare float64   `json:"evict_share" min:"0" max:"0.95" doc:"Of the messages; 0: the settings' share."`
	GoalShare  float64   `json:"goal_share" min:"0" max:"0.95" doc:"Of the window, that may stay; 0: the settings' goal."`
}

// SlideMode is a mode of compaction_settings, or bySettings.
type SlideMode plan.Mode

// bySettings uses the mode in the agent's settings.
const bySettings SlideMode = "settings"

func (SlideMode) oneOf() []string {
	all := []string{string(bySettings)}
	for _, m := range plan.Modes {
		all = append(all, string(m))
	}
	return all
}

func (*Slide) describe() Mechanism {
	return Mechanism{Name: "slide", Stage: Compact, Source: "Letta",
		Words: "Summarizes the oldest 30 % of the messages, and 10 % more until the rest is within a goal.",
		New:   func() Step { return &Slide{Mode: bySettings} }}
}

// Plan calls plan.MakePlan.
func (s *Slide) Plan(v clip.View, at Moment) (plan.Plan, error) {
	set := at.settings()
	if s.Mode != bySettings {
		set.Mode = plan.Mode(s.Mode)
	}
	if s.EvictShare > 0 {
		set.Percentage = s.EvictShare
	}
	if s.GoalShare > 0 {
		set.Goal = min(s.GoalShare, set.Trigger-plan.GoalBelowTrigger)
	}
	if most := at.most(v); v.Window > 0 && most < set.Limit(v.Window) { // the policy's own trigger is lower: stay below it
		set.Goal = min(set.Goal, float64(plan.Rest(most, v.Fixed))/float64(v.Window))
	}
	return plan.MakePlan(v, set)
}
