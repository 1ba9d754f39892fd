package plan

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
)

// Cut is a policy's choice of what stays in a view.
type Cut struct {
	At     int           // index of the first message to keep; the cut is at the last cut point at or before it
	Keep   []int         // indexes of earlier messages to keep, with their groups, if everything else fits
	Goal   int           // upper bound of the view's tokens afterwards; 0, or above the settings' trigger: that trigger
	Below  int           // the policy's own trigger in tokens; it lowers Goal to restShare of the room. 0: none
	All    bool          // the summary must describe the current state, because no message that stays shows it
	Split  bool          // if the cut divides a turn, the turn's beginning is summarized separately
	Format *prose.Format // the summary's format; nil: the format of the settings' mode
	Anyway bool          // compact also if that likely saves nothing
}

// restShare is a share of the room between the fixed parts and a policy's trigger. A compaction leaves at most that
// share filled, so that the next turn does not compact again.
const restShare = 0.75

// Rest returns the tokens that a view may have after a compaction by a policy with a trigger: the fixed parts plus
// restShare of the room up to the trigger. If the fixed parts leave no room, it returns the trigger.
func Rest(trigger, fixed int) int {
	room := max(trigger-max(fixed, 0), 0)
	return trigger - room + tokenmath.Share(restShare, room)
}

// ByCut plans a compaction at a given cut. More messages leave if the rest exceeds the goal, and the rest is clipped if
// it does not fit below the window's trigger. It returns a *Nothing if no message can leave and nothing can be clipped,
// or if the view fits and a compaction would save nothing; the plan then only has its mode. It returns a *TooBig if
// the messages that must stay do not fit.
func ByCut(v clip.View, s Settings, c Cut) (Plan, error) {
	s.Mode = s.Mode.withAll(c.All)
	plan, err := planCut(newPlanner(v, s), c)
	if len(c.Keep) > 0 && isTooBig(err) {
		c.Keep = nil
		plan, err = planCut(newPlanner(v, s), c)
	}
	if p := newPlanner(v, s); isTooBig(err) && p.points.Abandoned() {
		p.points.Release()
		plan, err = planCut(p, c)
	}
	if err != nil {
		plan.Mode = s.Mode
	}
	return plan, err
}

func isTooBig(err error) bool {
	_, ok := errors.AsType[*TooBig](err)
	return ok
}

// withAll returns the mode that summarizes everything, or only the beginning, with the same model.
func (m Mode) withAll(all bool) Mode {
	switch {
	case m.own() && all:
		return SelfCompactAll
	case m.own():
		return SelfCompactSlidingWindow
	case all:
		return All
	}
	return SlidingWindow
}

func planCut(p *planner, c Cut) (Plan, error) {
	p.goal = p.limit
	if c.Below > 0 {
		p.rests, p.below = true, min(c.Below, p.limit)
		p.goal = Rest(p.below, p.ratio.Of(max(p.v.Fixed, 0)))
	}
	if c.Goal > 0 {
		p.goal = min(c.Goal, p.goal)
	}
	p.quote(c.Format)
	p.points.Keep(c.Keep)
	p.pin()
	plan, err := p.plan(strategy{self: p.settings.Mode.own(),
		cuts: func(points clip.CutPoints, _ Settings) []int { return cutsFrom(points, c.At) }})
	if err != nil {
		return Plan{}, err
	}
	if !c.Anyway && plan.After >= plan.Before && plan.Before <= p.goal && !TooLong(p.v) {
		return Plan{}, &Nothing{Messages: len(p.v.Messages), Summarized: p.v.Summary != nil,
			Stuck: len(p.v.Messages) > 0}
	}
	plan.Format = c.Format
	if c.Split && !c.Format.QuotesUser() {
		plan.Split = dividedTurn(p.v, plan)
	}
	return plan, nil
}

// dividedTurn returns the position of the user's message that begins the turn divided by the plan's cut. It returns 0
// if the cut divides no turn, or if nothing of the turn leaves.
func dividedTurn(v clip.View, p Plan) int {
	began, leaves := 0, false
	for _, m := range v.Messages {
		switch {
		case m.Position >= p.First && m.Role == recall.User, m.Position >= p.First && !leaves:
			return 0
		case m.Position >= p.First:
			return began
		case m.Role == recall.User:
			began, leaves = m.Position, p.evicts(m)
		default:
			leaves = leaves || began > 0 && p.evicts(m)
		}
	}
	return 0
}

// cutsFrom returns the cut at or before index first, and then further cuts. Each evicts 10 percent of the messages
// more, up to the last possible cut.
func cutsFrom(points clip.CutPoints, first int) []int {
	n := len(points.Inside) - 1
	first = points.Before(min(max(first, 0), points.OpenCall))
	cuts := []int{first}
	for step := 1; step < 10; step++ {
		cut := min(points.Before(min(first+step*max(n/10, 1), n)), points.Last())
		if cut > cuts[len(cuts)-1] {
			cuts = append(cuts, cut)
		}
	}
	return slices.Compact(append(cuts, max(points.Last(), first)))
}

// MessageTokens returns the tokens of each message in a view, as shown.
func MessageTokens(v clip.View) []int { return clip.ShownTokens(v) }

// FixedTokens returns the tokens of a view without its messages: the fixed parts and the summary.
func FixedTokens(v clip.View) int { return tokenmath.Add(v.Fixed, v.SummaryTokens(v.SummaryClip())) }

// PartTokens returns the tokens of a part when the view's model is shown it whole.
func PartTokens(v clip.View, p recall.Part) int { return v.WholePartTokens(p) }
