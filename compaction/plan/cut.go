package plan

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall"
)

// Cut is what the cutter of a policy wants to leave a view.
type Cut struct {
	At     int           // index of the first message that stays; the last cut point at or before it is taken
	Keep   []int         // indexes of messages before At that stay, with what belongs to them, if the rest fits
	Goal   int           // tokens that the view may take afterwards; 0, or more than the settings' trigger: up to that
	Below  int           // tokens above which the policy compacts again: Goal is restShare of the room below. 0: no rest
	All    bool          // nothing stays that shows the current state: the summary says it
	Split  bool          // the beginning of a turn that the cut divides is summarized by itself
	Format *prose.Format // of the summary; nil: that of the settings' mode
}

// restShare is the share of the room between the fixed parts and the trigger of a policy that a compaction may leave
// taken: else the next turn would compact again.
const restShare = 0.75

// Rest returns the tokens that a view may take after a compaction by a policy with a trigger: the fixed parts, and
// three quarters of the room between them and the trigger; up to the trigger if the fixed parts leave no room.
func Rest(trigger, fixed int) int {
	room := max(trigger-max(fixed, 0), 0)
	return trigger - room + ratio.Share(restShare, room)
}

// ByCut plans a compaction with a chosen cut. More leaves if the rest is over the goal, and what stays is clipped if
// it does not fit the view's window below the trigger. It returns a *Nothing if no message can leave and nothing can be
// clipped, or if that would save no tokens of a view that fits, and a *TooBig if what must stay does not fit.
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
	return plan, err
}

func isTooBig(err error) bool {
	_, ok := errors.AsType[*TooBig](err)
	return ok
}

// withAll returns the mode that summarizes everything or only the beginning, by the same model.
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
	if plan.After >= plan.Before && plan.Before <= p.goal && !TooLong(p.v) {
		return Plan{}, &Nothing{Messages: len(p.v.Messages), Summarized: p.v.Summary != nil,
			Stuck: len(p.v.Messages) > 0}
	}
	plan.Format = c.Format
	if c.Split && !c.Format.QuotesUser() {
		plan.Split = dividedTurn(p.v, plan)
	}
	return plan, nil
}

// dividedTurn returns the position of the user's message with which the turn begins that the cut of a plan divides; 0
// if it divides none, or if nothing of the turn leaves.
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

// cutsFrom returns the cut at or before an index, and those that evict 10 percent of the messages more each, up to the
// last.
func cutsFrom(points clip.CutPoints, at int) []int {
	n := len(points.Inside) - 1
	at = points.Before(min(max(at, 0), points.OpenCall))
	cuts := []int{at}
	for step := 1; step < 10; step++ {
		cut := min(points.Before(min(at+step*max(n/10, 1), n)), points.Last())
		if cut > cuts[len(cuts)-1] {
			cuts = append(cuts, cut)
		}
	}
	return slices.Compact(append(cuts, max(points.Last(), at)))
}

// MessageTokens returns the tokens of each message of a view, as it is shown.
func MessageTokens(v clip.View) []int { return clip.ShownTokens(v) }

// FixedTokens returns the tokens of a view besides its messages: those of the fixed parts, and of the summary.
func FixedTokens(v clip.View) int { return ratio.Add(v.Fixed, v.SummaryTokens(v.SummaryClip())) }

// PartTokens returns the tokens of a part, as it is shown to the model of a view.
func PartTokens(v clip.View, p recall.Part) int { return v.WholePartTokens(p) }
