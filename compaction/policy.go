package compaction

import (
	"cmp"
	"fmt"
	"math"
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

// desk is what planning a view needs, counted once.
type desk struct {
	v           View
	settings    Settings
	window      int // the view's, or a very large one if that is not known
	goal, limit int
	groups      groups
	ratio       ratio // of a provider's tokens to ours, in the messages that its report covers
	known       int   // how many these are
	shown       []int // tokens of each message
	sums        []int // of the messages before each; one more than there are messages
	clips       map[int][]Clip
	sizes       map[place]size // of results, as they are looked at
}

// size is that of a result in the log.
type size struct{ chars, tokens int }

func (d *desk) size(at place) size {
	s, ok := d.sizes[at]
	if !ok {
		p := d.v.Messages[at.message].Content[at.part]
		s = size{chars: shownChars(p), tokens: recall.Tokens(p.Text)}
		d.sizes[at] = s
	}
	return s
}

// endless stands for a window that is not known.
const endless = math.MaxInt / 16

func newDesk(v View, s Settings) *desk {
	d := &desk{v: v, settings: s, window: v.Window, groups: groupsOf(v.Messages), shown: shownTokens(v), clips: clipsOf(v.Clips),
		sizes: map[place]size{}}
	if d.window <= 0 {
		d.window = endless
	}
	d.goal, d.limit = share(s.Goal, d.window), share(s.Trigger, d.window)
	d.sums = make([]int, len(d.shown)+1)
	for i, tokens := range d.shown {
		d.sums[i+1] = add(d.sums[i], tokens)
	}
	d.ratio = ratio{1, 1}
	if v.reported() {
		for d.known < len(v.Messages) && v.Messages[d.known].Position <= v.Usage.Position {
			d.known++
		}
		d.ratio = ratioOf(v.Usage.PromptTokens, add(add(v.Fixed, d.previous()), d.sums[d.known]))
	}
	return d
}

func (d *desk) previous() int {
	if d.v.Summary == nil {
		return 0
	}
	return max(d.v.Summary.Tokens, 0)
}

// candidate is a cut of a view, and the clips in what stays.
type candidate struct {
	*desk
	cut     int
	kept    bool // the newest message of the user stays though it is before the cut
	evicted int
	left    int // tokens that left
	old     int // tokens that stay and a report covers, in ours
	new     int // tokens that stay, of later messages
	budget  int
	fresh   map[place]Clip
}

// place is that of a part in the view.
type place struct{ message, part int }

func (d *desk) at(cut int) candidate {
	c := candidate{desk: d, cut: cut, kept: d.groups.user >= 0 && d.groups.user < cut, evicted: cut, left: d.sums[cut]}
	all, known := d.sums[len(d.shown)], d.sums[d.known]
	c.old = known - d.sums[min(cut, d.known)]
	c.new = all - known - (d.sums[cut] - d.sums[min(cut, d.known)])
	if c.kept {
		tokens := d.shown[d.groups.user]
		c.evicted--
		c.left -= tokens
		if d.groups.user < d.known {
			c.old += tokens
		} else {
			c.new += tokens
		}
	}
	if c.evicted > 0 {
		c.budget = d.budget(c.left)
	}
	return c
}

// wrapperTokens is what the message that shows a summary takes beside its text, at most.
const wrapperTokens = 80

// budget is what the text of a summary may take of which so many tokens leave: no more than a tenth of the window, a quarter of what the
// fixed parts leave of it below the trigger, and a quarter token for each character that the settings allow; and less than what it stands
// for.
func (d *desk) budget(left int) int {
	most := min(d.window/10, (d.limit-d.ratio.of(max(d.v.Fixed, 0)))/4, add(d.previous(), left/2))
	if d.settings.ClipChars != nil {
		most = min(most, *d.settings.ClipChars/4)
	}
	return max(most, 1)
}

// tokens estimates the view after the cut.
func (c candidate) tokens() int {
	if c.evicted == 0 {
		return add(c.ratio.of(add(add(c.v.Fixed, c.previous()), c.old)), c.new)
	}
	return add(add(c.ratio.of(add(c.v.Fixed, c.old)), c.new), c.budget+wrapperTokens)
}

// counted is the view after the cut without regard to a report.
func (c candidate) counted() int {
	summary := c.previous()
	if c.evicted > 0 {
		summary = c.budget + wrapperTokens
	}
	return add(add(c.v.Fixed, summary), add(c.old, c.new))
}

// worth tells whether a plan makes fewer messages of the view, or is needed.
func (c candidate) worth(before, target int) bool {
	replaced := c.evicted
	if c.v.Summary != nil {
		replaced++
	}
	return c.evicted > 0 && (replaced > 1 || before > target)
}

// clipLevels are the characters that are shown of results, one level after the other until what stays fits: the longest are clipped first,
// and of these the oldest.
var clipLevels = []int{8000, 4000, 2000, 1000, 500}

// least is the view after a cut with all clipped that can be.
func (d *desk) least(cut int) candidate {
	c := d.at(cut)
	c.clip(-1, clipLevels[len(clipLevels)-1:])
	return c
}

// clip clips results in what stays until it takes no more than target.
func (c *candidate) clip(target int, levels []int) {
	c.fresh = map[place]Clip{}
	for _, chars := range levels {
		for i := c.cut; i < len(c.v.Messages); i++ {
			for part, p := range c.v.Messages[i].Content {
				if p.Type != recall.ToolReturn || len(p.Text) <= chars {
					continue
				}
				if c.tokens() <= target {
					return
				}
				c.clipPart(place{i, part}, chars)
			}
		}
	}
}

// clipPart shows at most so many characters of a result, where that makes it shorter.
func (c *candidate) clipPart(at place, chars int) {
	m := c.v.Messages[at.message]
	whole := c.size(at)
	was, again := c.clipAt(at)
	if whole.chars <= chars || again && was.Chars <= chars {
		return
	}
	shown := whole.tokens
	if again {
		shown = clippedTokens(m, was)
	}
	clip := Clip{Position: m.Position, Part: at.part, Chars: chars}
	saves := shown - clippedTokens(m, clip)
	if saves <= 0 {
		return
	}
	c.fresh[at] = clip
	if at.message < c.known {
		c.old = max(c.old-saves, 0)
	} else {
		c.new = max(c.new-saves, 0)
	}
}

// clipAt is how a result is shown in the candidate, if it is clipped.
func (c *candidate) clipAt(at place) (Clip, bool) {
	if clip, ok := c.fresh[at]; ok {
		return clip, true
	}
	for _, clip := range c.clips[c.v.Messages[at.message].Position] {
		if clip.Part == at.part {
			return clip, true
		}
	}
	return Clip{}, false
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
	p.First = d.begins(c.cut)
	for i, m := range d.v.Messages {
		if i < c.cut && !(c.kept && i == d.groups.user) {
			p.leave(m)
			continue
		}
		if m.Position < p.First {
			p.Kept = append(p.Kept, m.Position)
		}
		for part := range m.Content {
			at := place{i, part}
			if clip, ok := c.clipAt(at); ok {
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
		if i < least.cut && !(least.kept && i == d.groups.user) {
			continue
		}
		tokens := d.shown[i]
		for part := range m.Content {
			if clip, ok := least.fresh[place{i, part}]; ok {
				tokens += savedBefore(d.clips[m.Position], m, part) - clipSaves(m, clip)
			}
		}
		e.Items = append(e.Items, Big{What: fmt.Sprintf("the %s message at position %d", m.Role, m.Position), Position: m.Position, Tokens: tokens})
	}
	slices.SortStableFunc(e.Items, func(a, b Big) int { return cmp.Compare(b.Tokens, a.Tokens) })
	e.Items = e.Items[:min(maxBig, len(e.Items))]
	return e
}

// savedBefore is what a part is shorter for a clip that it had.
func savedBefore(clips []Clip, m recall.Message, part int) int {
	for _, c := range clips {
		if c.Part == part {
			return clipSaves(m, c)
		}
	}
	return 0
}
