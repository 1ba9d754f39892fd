package compaction

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// strategy says how a mode plans: it evicts the beginning of a view, up to the first of its cuts after which the rest
// fits. If none fits, tool results in what stays are clipped.
type strategy struct {
	cuts     func(CutPoints, Settings) []int // ascending indexes in the view; the last evicts as much as the mode allows
	keepGoal bool                            // a view that was compacted and is within the goal is left alone
	self     bool                            // the agent's own model writes the summary
}

// strategies are those of the modes.
var strategies = map[Mode]strategy{
	SlidingWindow:            {cuts: slidingCuts, keepGoal: true},
	All:                      {cuts: allCuts},
	SelfCompactSlidingWindow: {cuts: slidingCuts, keepGoal: true, self: true},
	SelfCompactAll:           {cuts: allCuts, self: true},
}

// slidingCuts evict the share of the messages that the settings name, then 10 percent of them more, and so on. The
// newest group always stays.
func slidingCuts(points CutPoints, s Settings) []int {
	n := len(points.inside) - 1
	last := points.Last()
	var cuts []int
	for step := 0; ; step++ {
		of := s.Percentage + float64(step)/10
		if of >= 1 {
			break
		}
		cuts = append(cuts, min(points.Before(int(of*float64(n)+rounding)), last))
	}
	return slices.Compact(append(cuts, last))
}

// allCuts evict everything but what stays wherever the view is cut.
func allCuts(points CutPoints, _ Settings) []int { return []int{points.openCall} }

// planner holds the counts of a view from which a plan is made.
type planner struct {
	v           View
	settings    Settings
	window      int  // the view's, or endless if it is unknown
	goal, limit int  // tokens
	below       int  // tokens above which the view is compacted again; at most limit
	rests       bool // the goal is that of a policy's own trigger
	points      CutPoints
	previous    int   // tokens of the view's summary
	pinned      []int // indexes of the messages that stay wherever the view is cut
	ratio       ratio // of a provider's tokens to ours, in the messages that its report covers
	known       int   // number of messages that the report covers
	shown       []int // tokens of each message
	sums        []int // of the messages before each; one more than there are messages
	were        []int // sums before the clips of this plan
	edits       map[int][]Edit
	fresh       map[place]Edit // of groups that are too large for any window
	sizes       map[place]size // of what can be clipped, once it was looked at
	format      *Format        // of the summary; nil: that of the settings
	said        []int          // tokens of the user's messages before each, as the format quotes them; nil: it does not
	carried     int            // tokens of those that the summary before quotes
}

// place is the place of a part: the index of its message in the view, and its own index in the message.
type place struct{ message, part int }

// ofSummary is the place of the summary.
var ofSummary = place{message: -1}

// size is the size of a part in the log.
type size struct{ chars, tokens int }

// endless is the size of a window that is unknown.
const endless = math.MaxInt / 16

func newPlanner(v View, s Settings) *planner {
	p := &planner{v: v, settings: s, window: v.Window, points: CutPointsOf(v.Messages), shown: shownTokens(v),
		edits: editsByPosition(v.Edits), fresh: map[place]Edit{}, sizes: map[place]size{}, ratio: ratio{1, 1}}
	if p.window <= 0 {
		p.window = endless
	}
	p.goal, p.limit = share(s.Goal, p.window), s.Limit(p.window)
	p.below = p.limit
	p.previous = v.summaryTokens(v.summaryClip())
	p.pin()
	p.were = sums(p.shown)
	p.sums = p.were
	if v.reported() {
		for p.known < len(v.Messages) && v.Messages[p.known].Position <= v.Usage.Position {
			p.known++
		}
		p.ratio = ratioOf(v.Usage.PromptTokens, add(add(v.Fixed, p.previous), p.sums[p.known]))
	}
	return p
}

// pin notes which messages stay wherever the view is cut.
func (p *planner) pin() {
	p.pinned = nil
	for i := range p.v.Messages {
		if p.points.Stays(i) {
			p.pinned = append(p.pinned, i)
		}
	}
}

// sums returns the sum of the numbers before each, and of all.
func sums(of []int) []int {
	all := make([]int, len(of)+1)
	for i, n := range of {
		all[i+1] = add(all[i], n)
	}
	return all
}

func (p *planner) size(at place) size {
	s, ok := p.sizes[at]
	if !ok {
		part := p.v.Messages[at.message].Content[at.part]
		s = size{chars: shownChars(part), tokens: p.v.partTokens(part)}
		p.sizes[at] = s
	}
	return s
}

// MakePlan decides what leaves a view. It reads and writes nothing, and makes the same plan from the same view and
// settings. It returns a *Nothing or a *TooBig if there is no plan, and ErrInvalid if the mode is unknown.
func MakePlan(v View, s Settings) (Plan, error) {
	by, ok := strategies[s.Mode]
	if !ok {
		return Plan{}, Settings{Mode: s.Mode}.Validate()
	}
	p := newPlanner(v, s)
	plan, err := p.plan(by)
	if _, tooBig := errors.AsType[*TooBig](err); tooBig && p.points.abandoned() {
		p = newPlanner(v, s)
		p.points.release()
		p.pin()
		return p.plan(by)
	}
	return plan, err
}

func (p *planner) plan(by strategy) (Plan, error) {
	v, s := p.v, p.settings
	before := estimate(v, p.shown)
	cuts := by.cuts(p.points, s)
	last := cuts[len(cuts)-1]
	settled := (v.Summary != nil || len(v.Edits) > 0) && (by.keepGoal || p.at(last).evicted == 0) && !v.TooLong()
	if settled && before <= p.goal {
		return Plan{}, &Nothing{Tokens: before, Goal: p.goal}
	}
	if before > p.goal {
		p.clipGroups(cuts[0])
	}
	if c, ok := p.first(cuts, before, p.goal); ok {
		return c.plan(by, before, p.goal), nil
	}
	least := p.least(last)
	goal := p.goal
	if least.tokens() > p.limit {
		least.squeeze(-1)
		if before > p.limit { // a part of the free room goes to the newest results
			goal += max(p.below-goal, 0) / 2
		}
	}
	if n := len(v.Messages); least.tokens() > p.limit && last < n { // rather no newest message than no prompt
		last = n
		cuts, least = []int{last}, p.least(last)
		least.squeeze(-1)
	}
	reached := least.tokens()
	bound := min(add(p.limit, least.summary()), p.window) // what fits without a summary fits with the shortest
	impossible := reached > bound && least.counted() > bound
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
	if p.rests { // what stays below the trigger is not clipped
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

// TooLong reports whether a view has more messages than can be sent, whatever their tokens.
func (v View) TooLong() bool { return len(v.Messages) > MaxMessages }

// first returns the first of the cuts that reaches the target, and the goal of messages if the view is too long.
func (p *planner) first(cuts []int, before, target int) (candidate, bool) {
	for _, cut := range cuts {
		c := p.at(cut)
		short := !p.v.TooLong() || len(p.shown)-c.evicted <= share(p.settings.Goal, MaxMessages)
		if c.worthwhile(before, target) && c.tokens() <= target && short {
			return c, true
		}
	}
	return candidate{}, false
}

// Refuse returns a *TooBig that names the largest items of a view that cannot become small enough to be sent.
func Refuse(v View, s Settings) error {
	p := newPlanner(v, s)
	e := p.tooBig(p.at(0))
	e.Least = Estimate(v)
	return e
}

// tooBig names the largest items that cannot leave.
func (p *planner) tooBig(least candidate) *TooBig {
	e := &TooBig{Window: p.window, Limit: p.limit, Least: min(least.tokens(), least.counted()),
		Crowded: Crowding(p.v.Fixed, p.v.Window)}
	as := ratio{1, 1} // as Least counts
	if least.tokens() < least.counted() {
		as = p.ratio
	}
	tokensOf := func(i int) int {
		tokens := max(least.clippedMessage(i), 0)
		if i < p.known {
			tokens = as.of(tokens)
		}
		return tokens
	}
	e.Items = []Big{{What: "the system prompt", Tokens: as.of(max(p.v.Fixed-p.v.Tools, 0))},
		{What: "the definitions of the tools", Tokens: as.of(p.v.Tools)}}
	if p.v.Tools == 0 {
		e.Items = []Big{{What: "the system prompt with the tools", Tokens: as.of(p.v.Fixed)}}
	}
	if tokens := least.summary(); tokens > 0 {
		e.Items = append(e.Items, Big{What: "the summary", Tokens: tokens})
	}
	group, calls := Big{}, 0
	for _, m := range p.v.Messages[p.points.unseen:p.points.seen] {
		for _, part := range m.Content {
			if part.Type == recall.ToolCall {
				calls++
			}
		}
	}
	for i, m := range p.v.Messages {
		switch {
		case calls > 1 && i >= p.points.unseen && i < p.points.seen:
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

// clippedMessage returns the tokens of a message with the clips of the candidate.
func (c candidate) clippedMessage(i int) int {
	m, tokens := c.v.Messages[i], c.shown[i]
	for part := range m.Content {
		clip, ok := c.fresh[place{i, part}]
		if !ok {
			continue
		}
		if was, again := c.editAt(c.planner.fresh, place{i, part}); again {
			tokens += c.v.editSaves(m, was)
		}
		tokens -= c.v.editSaves(m, clip)
	}
	return tokens
}
