package compaction

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// policy evicts the beginning of a view up to the first of its cuts that fits. If none does, results of tools in what stays are clipped.
type policy struct {
	mode Mode
	cuts func(groups, Settings) []int // places in the view, ascending; at the last, as much leaves as the policy gives
	goal bool                         // what was compacted and is within the goal is left as it is
	self bool
}

// sliding cuts where the share of the messages has left that the settings name, then ten percent of them more, and so on; the newest group
// stays.
func sliding(g groups, s Settings) []int {
	n := len(g.parts) - 1
	last := g.last()
	var cuts []int
	for step := 0; ; step++ {
		of := s.Percentage + float64(step)/10
		if of >= 1 {
			break
		}
		cuts = append(cuts, min(g.before(int(of*float64(n)+rounding)), last))
	}
	return slices.Compact(append(cuts, last))
}

// everything cuts before the open call of a tool, or behind all messages.
func everything(g groups, _ Settings) []int { return []int{g.pending} }

// Plan implements Policy.
func (p policy) Plan(v View, s Settings) (Plan, error) {
	d := newDesk(v, s)
	before := estimate(v, d.shown)
	cuts := p.cuts(d.groups, s)
	last := cuts[len(cuts)-1]
	settled := (v.Summary != nil || len(v.Clips) > 0) && (p.goal || d.at(last).evicted == 0)
	if settled && before <= d.goal {
		return Plan{}, &Nothing{Tokens: before, Goal: d.goal}
	}
	if before > d.goal {
		d.clipGroups(cuts[0])
	}
	if c, ok := d.first(cuts, before, d.goal); ok {
		return d.plan(p, c, before, d.goal), nil
	}
	least := d.least(last)
	if least.tokens() > d.limit && last < d.groups.pending { // rather than no prompt at all, one without the newest group
		last = d.groups.pending
		cuts, least = []int{last}, d.least(last)
	}
	reached := least.tokens()
	impossible := reached > d.limit && least.counted() > d.limit
	switch {
	case impossible && before > d.limit:
		return Plan{}, d.tooBig(least)
	case impossible, settled && reached > d.goal && before <= d.limit:
		return Plan{}, &Nothing{Tokens: before, Goal: d.limit}
	}
	target := d.goal
	if reached > target { // then half of what is left below the limit stays free
		target = reached + max(d.limit-reached, 0)/2
	}
	c, ok := d.first(cuts, before, target)
	if !ok {
		c = d.at(last)
		c.clip(target, clipLevels)
	}
	if !c.worth(before, target) && len(c.fresh) == 0 {
		return Plan{}, &Nothing{Messages: len(v.Messages), Summarised: v.Summary != nil}
	}
	return d.plan(p, c, before, target), nil
}

// first is the first of the cuts that comes down to the target.
func (d *desk) first(cuts []int, before, target int) (candidate, bool) {
	for _, cut := range cuts {
		if c := d.at(cut); c.worth(before, target) && c.tokens() <= target {
			return c, true
		}
	}
	return candidate{}, false
}

// plan writes a candidate down.
func (d *desk) plan(by policy, c candidate, before, target int) Plan {
	p := Plan{Mode: by.mode, Before: before, After: c.tokens(), Evicted: c.evicted,
		Kept: []int{}, Clips: []Clip{}, Stay: len(d.v.Messages) - c.evicted, Crowded: Crowding(d.v.Fixed, d.v.Window)}
	if d.v.Window > 0 {
		p.Window, p.Goal = d.v.Window, target
	}
	if c.evicted > 0 {
		p.Tokens, p.Budget, p.NeedsModel, p.Self = c.left, c.budget, true, by.self
	}
	if c.evicted == 0 { // what stays before the cut is all that was
		c.cut = 0
	}
	p.First = d.begins(c.cut)
	for i, m := range d.v.Messages {
		if c.leaves(i) {
			p.leave(m)
			continue
		}
		if m.Position < p.First {
			p.Kept = append(p.Kept, m.Position)
		}
		for part := range m.Content {
			at := place{i, part}
			if clip, ok := d.clipAt(c.fresh, at); ok {
				p.Clips = append(p.Clips, clip)
			}
			if _, changed := c.fresh[at]; changed {
				p.change(m.Position)
			}
		}
	}
	return p
}

// begins is the position from which on all messages stay after a cut: never before where a summary ends.
func (d *desk) begins(cut int) int {
	first := 1
	if d.v.Summary != nil {
		first = d.v.Summary.To + 1
	}
	switch n := len(d.v.Messages); {
	case cut < n:
		first = max(first, d.v.Messages[cut].Position)
	case n > 0:
		first = max(first, d.v.Messages[n-1].Position+1)
	}
	return first
}

func (p *Plan) leave(m recall.Message) {
	if p.From == 0 {
		p.From, p.FromSeq = m.Position, m.Seq
	}
	p.To, p.ToSeq = m.Position, m.Seq
	p.change(m.Position)
}

func (p *Plan) change(position int) {
	if p.FirstChanged == 0 {
		p.FirstChanged = position
	}
	p.FirstChanged = min(p.FirstChanged, position)
}

// tooBig names what cannot leave.
func (d *desk) tooBig(least candidate) *TooBig {
	e := &TooBig{Window: d.window, Limit: d.limit, Least: min(least.tokens(), least.counted()), Crowded: Crowding(d.v.Fixed, d.v.Window)}
	e.Items = []Big{{What: "the system prompt", Tokens: max(d.v.Fixed-d.v.Tools, 0)}, {What: "the definitions of the tools", Tokens: d.v.Tools}}
	if d.v.Tools == 0 {
		e.Items = []Big{{What: "the system prompt with the tools", Tokens: d.v.Fixed}}
	}
	if least.evicted > 0 {
		e.Items = append(e.Items, Big{What: "a summary", Tokens: least.budget + wrapperTokens})
	} else if d.previous() > 0 {
		e.Items = append(e.Items, Big{What: "the summary", Tokens: d.previous()})
	}
	for i, m := range d.v.Messages {
		if least.leaves(i) {
			continue
		}
		tokens := d.shown[i]
		for part := range m.Content {
			if clip, ok := least.fresh[place{i, part}]; ok {
				was, again := d.clipAt(d.fresh, place{i, part})
				tokens -= d.size(place{i, part}).tokens - clippedTokens(m, clip)
				if again {
					tokens += clipSaves(m, was)
				}
			}
		}
		e.Items = append(e.Items, Big{What: fmt.Sprintf("the %s message at position %d", m.Role, m.Position), Position: m.Position, Tokens: tokens})
	}
	slices.SortStableFunc(e.Items, func(a, b Big) int { return cmp.Compare(b.Tokens, a.Tokens) })
	e.Items = slices.DeleteFunc(e.Items[:min(maxBig, len(e.Items))], func(b Big) bool { return b.Tokens <= 0 })
	return e
}
