package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
)

// MakePlan decides what leaves a view. It has no other input or effect: the same view and settings give the same plan.
// If there is no plan, it returns a *Nothing or a *TooBig; ErrInvalid if the mode is unknown.
func MakePlan(v clip.View, s Settings) (Plan, error) {
	by, ok := strategies[s.Mode]
	if !ok {
		return Plan{}, Settings{Mode: s.Mode}.Validate()
	}
	p := newPlanner(v, s)
	p.omits = !p.points.Abandoned()
	plan, err := p.plan(by)
	if _, tooBig := errors.AsType[*TooBig](err); tooBig && p.points.Abandoned() {
		p = newPlanner(v, s)
		p.points.Release()
		p.pin()
		return p.plan(by)
	}
	return plan, err
}

func (p *planner) plan(by strategy) (Plan, error) {
	v, s := p.v, p.settings
	before := clip.EstimateShown(v, p.shown)
	cuts := by.cuts(p.points, s)
	last := cuts[len(cuts)-1]
	settled := (v.Summary != nil || len(v.Edits) > 0) && (by.keepGoal || p.at(last).evicted == 0) && !TooLong(v)
	if before > p.goal {
		p.clipGroups(cuts[0])
	}
	if p.tight { // the newest results get nearly all the room
		p.goal = max(p.goal, p.below-(p.below-p.ratio.Of(max(p.v.Fixed, 0)))/20)
	}
	if settled && before <= p.goal {
		return Plan{}, &Nothing{Tokens: before, Goal: p.goal}
	}
	if c, ok := p.first(cuts, before, p.goal); ok {
		return c.plan(by, before, p.goal), nil
	}
	least := p.least(last)
	goal := p.goal
	if least.tokens() > p.limit {
		least.squeeze(-1)
		if before > p.limit { // the newest results get a part of the free room
			goal += max(p.below-goal, 0) / 2
		}
	}
	if n := len(v.Messages); least.tokens() > p.limit && last < n { // better lose the newest message than the prompt
		last = n
		cuts, least = []int{last}, p.least(last)
		least.squeeze(-1)
	}
	reached := least.tokens()
	bound := min(tokenmath.Add(p.limit, least.summary()), p.window) // what fits without a summary fits with the shortest
	impossible := reached > bound && least.counted() > bound
	if reached > bound && before > p.limit && p.omits {
		fewer := least
		if fewer.omit(p.limit); fewer.tokens() < reached && (fewer.tokens() <= bound || fewer.counted() <= bound) {
			return fewer.plan(by, before, max(goal, fewer.tokens())), nil
		}
	}
	switch {
	case impossible && before > p.limit:
		return Plan{}, p.tooBig(least)
	case impossible, settled && reached > p.goal && before <= p.limit:
		return Plan{}, &Nothing{Tokens: before, Goal: p.limit, Stuck: true}
	}
	target := goal
	if reached > target { // leave half of the room below the trigger free
		target = reached + max(p.below-reached, 0)/2
	}
	if p.rests { // do not clip what already fits below the trigger
		target = max(target, min(p.at(last).tokens(), p.below))
	}
	c, ok := p.first(cuts, before, target)
	if !ok {
		c = p.at(last)
		c.clip(target, clipLevels)
		c.squeeze(target)
	}
	if !c.worthwhile(before, target) && (len(c.fresh) == 0 || c.tokens() >= before) {
		return Plan{}, &Nothing{Messages: len(v.Messages), Summarized: v.Summary != nil, Stuck: len(v.Messages) > 0}
	}
	return c.plan(by, before, target), nil
}

// MaxMessages bounds the messages of a view that is sent to a model.
const MaxMessages = 10_000

// TooLong reports whether a view has too many messages or bytes to be sent, whatever its tokens.
func TooLong(v clip.View) bool { return len(v.Messages) > MaxMessages || abridged(v) > 0 }

// abridged returns how many messages must leave so that only complete messages stay. An abridged message was too large
// to be read whole.
func abridged(v clip.View) int {
	for i, m := range slices.Backward(v.Messages) {
		if m.Abridged {
			return i + 1
		}
	}
	return 0
}

// first returns the first of the cuts that reaches the target. If the view is too long, the cut must also leave few
// enough messages.
func (p *planner) first(cuts []int, before, target int) (candidate, bool) {
	for _, cut := range cuts {
		c := p.at(cut)
		short := !TooLong(p.v) || len(p.shown)-c.evicted <= tokenmath.Share(p.settings.Goal, MaxMessages) &&
			c.evicted >= abridged(p.v)
		if c.worthwhile(before, target) && c.tokens() <= target && short {
			return c, true
		}
	}
	return candidate{}, false
}

// Refuse returns a *TooBig that names the largest items of a view that cannot be made small enough to be sent.
func Refuse(v clip.View, s Settings) error {
	p := newPlanner(v, s.AtMost())
	e := p.tooBig(p.at(0))
	e.Least = clip.Estimate(v)
	return e
}

// tooBig names the largest items that cannot leave.
func (p *planner) tooBig(least candidate) *TooBig {
	e := &TooBig{Window: p.window, Limit: p.limit, Least: least.tokens(),
		Crowded: clip.Crowding(p.v.Fixed, p.v.Window)}
	tokensOf := func(i int) int {
		tokens := max(least.clippedMessage(i), 0)
		if i < p.known {
			tokens = p.ratio.Of(tokens)
		}
		return tokens
	}
	e.Items = []Big{{What: "the system prompt", Tokens: p.ratio.Of(max(p.v.Fixed-p.v.Tools, 0))},
		{What: "the definitions of the tools", Tokens: p.ratio.Of(p.v.Tools)}}
	if p.v.Tools == 0 {
		e.Items = []Big{{What: "the system prompt with the tools", Tokens: p.ratio.Of(p.v.Fixed)}}
	}
	if tokens := least.summary(); tokens > 0 {
		e.Items = append(e.Items, Big{What: "the summary", Tokens: tokens})
	}
	group, calls := Big{}, 0
	for _, m := range p.v.Messages[p.points.Unseen:p.points.Seen] {
		for _, part := range m.Content {
			if part.Type == recall.ToolCall {
				calls++
			}
		}
	}
	for i, m := range p.v.Messages {
		switch {
		case calls > 1 && i >= p.points.Unseen && i < p.points.Seen:
			group.Position = cmp.Or(group.Position, m.Position)
			group.Tokens += tokensOf(i)
		case !least.leaves(i):
			what := fmt.Sprintf("the %s message at position %d", m.Role, m.Position)
			e.Items = append(e.Items, Big{What: what, Position: m.Position, Tokens: tokensOf(i)})
		}
	}
	if calls > 1 {
		group.What = fmt.Sprintf("the newest %d calls with their results, from position %d on", calls, group.Position)
		e.Items = append(e.Items, group)
	}
	slices.SortStableFunc(e.Items, func(a, b Big) int { return cmp.Compare(b.Tokens, a.Tokens) })
	e.Items = slices.DeleteFunc(e.Items[:min(maxBig, len(e.Items))], func(b Big) bool { return b.Tokens <= 0 })
	return e
}

// clippedMessage returns the tokens of a message with the candidate's clips.
func (c candidate) clippedMessage(i int) int {
	m, tokens := c.v.Messages[i], c.shown[i]
	for part := range m.Content {
		trim, ok := c.fresh[clip.Place{Message: i, Part: part}]
		if !ok {
			continue
		}
		if edit, again := c.editAt(c.planner.fresh, clip.Place{Message: i, Part: part}); again {
			tokens += c.v.EditSaves(m, edit)
		}
		tokens -= c.v.EditSaves(m, trim)
	}
	return tokens
}
