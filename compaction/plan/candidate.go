package plan

import (
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/tokenmath"
)

// candidate is a cut of a view, and the clips in the messages that stay.
type candidate struct {
	*planner
	cut     int                      // index of the first message behind the cut
	evicted int                      // number of messages that leave
	left    int                      // tokens that leave
	old     int                      // tokens that stay and are in the provider's report, by our count
	new     int                      // tokens that stay, in messages after the report
	budget  int                      // tokens of the summary, without quotes of the user
	quoted  int                      // tokens of these quotes
	fresh   map[clip.Place]clip.Edit // clips of the planner, and more
}

// at returns the candidate with a cut before message cut.
func (p *planner) at(cut int) candidate {
	c := candidate{planner: p, cut: cut, evicted: cut, left: p.were[cut], fresh: p.fresh}
	all, known := p.sums[len(p.shown)], p.sums[p.known]
	c.old = known - p.sums[min(cut, p.known)]
	c.new = all - known - (p.sums[cut] - p.sums[min(cut, p.known)])
	for _, i := range p.pinned {
		if i >= cut {
			continue
		}
		c.evicted--
		c.left -= p.were[i+1] - p.were[i]
		if i < p.known {
			c.old += p.shown[i]
		} else {
			c.new += p.shown[i]
		}
	}
	if c.evicted > 0 {
		c.budget = p.budget(c.left)
		c.quoted = c.quotes()
	}
	return c
}

// quotedShare is a share of the room between the fixed parts and the trigger. In a summary, quotes of the user take at
// most that share.
const quotedShare = 0.5

// quotes returns the tokens for quotes of the user in the summary. They suffice for all user's messages that leave and
// for the quotes in the previous summary. They are at most quotedShare of the room below the trigger, and at most what
// is free.
func (c candidate) quotes() int {
	if c.said == nil {
		return 0
	}
	n := tokenmath.Add(c.carried, c.said[c.cut])
	for _, i := range c.pinned {
		if i < c.cut {
			n -= c.said[i+1] - c.said[i]
		}
	}
	if n <= 0 {
		return 0
	}
	most := tokenmath.Share(quotedShare, max(c.below-c.ratio.Of(max(c.v.Fixed, 0)), 0))
	if c.settings.ClipChars != nil {
		most = min(most, *c.settings.ClipChars/4)
	}
	return max(min(n+prose.QuotesOverhead, most, max(c.goal, 1)-c.tokens()), 0)
}

func (c candidate) leaves(i int) bool { return i < c.cut && !c.points.Stays(i) }

// WrapperTokens bounds the tokens of a summary's message around the summary's text.
const WrapperTokens = 120

// smallSummary is the number of tokens up to which a summary may take a fifth of the window.
const smallSummary = 2048

// budget returns the tokens for a summary's text if evicted tokens leave. It is less than the summary replaces, and at
// most a tenth of the window (a fifth up to smallSummary), a quarter of the room between the fixed parts and the
// trigger, and a quarter token per character that the settings allow.
func (p *planner) budget(evicted int) int {
	room := p.below - p.ratio.Of(max(p.v.Fixed, 0))
	most := max(p.window/10, min(p.window/5, smallSummary))
	most = min(most, max(room/4, min(room/3, smallSummary)), tokenmath.Add(p.previous, evicted/2))
	if p.settings.ClipChars != nil {
		most = min(most, *p.settings.ClipChars/4)
	}
	if p.format != nil && p.format.MaxTokens > 0 {
		most = min(most, p.format.MaxTokens)
	}
	return max(most, 1)
}

// tokens estimates the tokens of the view after the cut.
func (c candidate) tokens() int {
	if c.evicted == 0 {
		return tokenmath.Add(c.ratio.Of(tokenmath.Add(tokenmath.Add(c.v.Fixed, c.summary()), c.old)), c.new)
	}
	return tokenmath.Add(tokenmath.Add(c.ratio.Of(tokenmath.Add(c.v.Fixed, c.old)), c.new), c.summary())
}

// counted estimates the tokens of the view after the cut by our own count, ignoring a provider's report.
func (c candidate) counted() int {
	return tokenmath.Add(tokenmath.Add(c.v.Fixed, c.summary()), tokenmath.Add(c.old, c.new))
}

// summary returns the tokens of the summary after the cut: the upper bound of a new one, or the size of the old one if
// it stays.
func (c candidate) summary() int {
	if c.evicted > 0 {
		return c.budget + c.quoted + WrapperTokens
	}
	if clip, ok := c.fresh[ofSummary]; ok {
		return c.v.SummaryTokens(&clip)
	}
	return c.previous
}

// worthwhile reports whether the cut makes the view shorter by at least one message, or is needed to reach the target.
func (c candidate) worthwhile(before, target int) bool {
	replaced := c.evicted
	if c.v.Summary != nil {
		replaced++
	}
	return c.evicted > 0 && (replaced > 1 || before > target)
}

func (c candidate) plan(by strategy, before, target int) Plan {
	p := Plan{Mode: c.settings.Mode, Before: before, After: c.tokens(), Evicted: c.evicted, Kept: []int{},
		Edits: []clip.Edit{},
		Stay:  len(c.v.Messages) - c.evicted, Crowded: clip.Crowding(c.v.Fixed, c.v.Window)}
	if c.v.Window > 0 {
		p.Window, p.Goal = c.v.Window, target
	}
	if c.evicted > 0 {
		p.Tokens, p.Budget, p.NeedsModel, p.Self = c.left, c.budget+c.quoted, true, by.self
		p.Quoted = c.quoted
	} else { // everything before the cut stays
		if clip, ok := c.fresh[ofSummary]; ok {
			p.Edits = append(p.Edits, clip)
			p.change(1)
		} else if clip := c.v.SummaryClip(); clip != nil {
			p.Edits = append(p.Edits, *clip)
		}
	}
	for c.cut > 0 && c.points.Stays(c.cut-1) {
		c.cut--
	}
	p.First = c.firstVisible()
	for i, m := range c.v.Messages {
		if c.leaves(i) {
			if p.From == 0 {
				p.From, p.FromSeq = m.Position, m.Seq
			}
			p.To, p.ToSeq = m.Position, m.Seq
			p.change(m.Position)
			continue
		}
		if m.Position < p.First {
			p.Kept = append(p.Kept, m.Position)
		}
		for part := range m.Content {
			place := clip.Place{Message: i, Part: part}
			if clip, ok := c.editAt(c.fresh, place); ok {
				p.Edits = append(p.Edits, clip)
			}
			if _, changed := c.fresh[place]; changed {
				p.change(m.Position)
			}
		}
	}
	return p
}

// firstVisible returns the position from which on all messages stay. It is always behind the end of the summary.
func (c candidate) firstVisible() int {
	first := 1
	if c.v.Summary != nil {
		first = c.v.Summary.To + 1
	}
	switch n := len(c.v.Messages); {
	case c.cut < n:
		first = max(first, c.v.Messages[c.cut].Position)
	case n > 0:
		first = max(first, c.v.Messages[n-1].Position+1)
	}
	return first
}

func (p *Plan) change(position int) {
	if p.FirstChanged == 0 {
		p.FirstChanged = position
	}
	p.FirstChanged = min(p.FirstChanged, position)
}
