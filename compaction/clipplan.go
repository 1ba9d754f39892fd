package compaction

import (
	"maps"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// clipLevels are the characters that are shown of results and of the arguments of calls. One level is tried after the
// other until what stays fits: longer texts are clipped first, and of these the oldest. lowLevels follow if a view does
// not fit otherwise. summaryLevels are those of a summary, until its message takes no more than leastSummary.
var (
	clipLevels    = []int{8000, 4000, 2000, 1000, 500}
	lowLevels     = []int{350, 250, 175, 125, 90, 60, 40, 20, 0}
	summaryLevels = append(slices.Clip(clipLevels), 200, 80)
)

// leastSummary bounds the tokens of the message of the shortest summary.
const leastSummary = MinBudget + wrapperTokens

// least returns the view after a cut with everything clipped to the last of clipLevels.
func (p *planner) least(cut int) candidate {
	c := p.at(cut)
	c.clip(-1, clipLevels[len(clipLevels)-1:])
	return c
}

// squeeze shortens the summary, and then clips to lowLevels, until the view takes no more than target.
func (c *candidate) squeeze(target int) {
	if c.evicted > 0 {
		c.quoted = max(c.quoted-max(c.tokens()-max(target, 0), 0), 0)
		c.budget = max(c.budget-max(c.tokens()-max(target, 0), 0), min(c.budget, MinBudget))
	} else if c.v.Summary != nil {
		for _, chars := range summaryLevels {
			clip := Edit{Chars: chars}
			if was := c.summary(); c.tokens() > target && was > leastSummary && c.v.summaryTokens(&clip) < was {
				c.fresh = maps.Clone(c.fresh)
				c.fresh[ofSummary] = clip
			}
		}
	}
	c.clip(target, lowLevels)
	if shortest := (Edit{}); c.evicted == 0 && c.tokens() > c.settings.Most(c.window) &&
		c.v.summaryTokens(&shortest) < c.summary() {
		c.fresh[ofSummary] = shortest
	}
}

// clip clips what stays until it takes no more than target.
func (c *candidate) clip(target int, levels []int) {
	c.fresh = maps.Clone(c.fresh)
	c.clipRange(clipping{fresh: c.fresh, to: len(c.v.Messages), levels: levels, leaves: c.leaves,
		enough: func() bool { return c.tokens() <= target },
		save: func(i, saved int) {
			if i < c.known {
				c.old = max(c.old-saved, 0)
			} else {
				c.new = max(c.new-saved, 0)
			}
		}})
}

// clipGroups clips what stays after a cut in every group that alone exceeds the room for messages, to three quarters of
// that room. Otherwise all messages before the group would have to leave, and then the group itself.
func (p *planner) clipGroups(cut int) {
	fixed := p.ratio.of(max(p.v.Fixed, 0))
	room := max(p.goal-fixed, (p.limit-fixed)/2) - p.budget(endless) - wrapperTokens
	for from, to := cut, cut; room > 0 && from < len(p.shown); from = to {
		for to++; p.points.inside[to]; {
			to++
		}
		known := min(max(p.known, from), to)
		tokens := add(p.ratio.of(p.sums[known]-p.sums[from]), p.sums[to]-p.sums[known])
		if tokens <= room {
			continue
		}
		p.clipRange(clipping{fresh: p.fresh, from: from, to: to, levels: clipLevels,
			leaves: func(int) bool { return false },
			enough: func() bool { return tokens <= room/4*3 },
			save: func(i, saved int) {
				p.shown[i] -= saved
				if i < p.known {
					saved = p.ratio.of(saved)
				}
				tokens -= saved
			}})
	}
	p.sums = sums(p.shown)
}

// clipping says what clipRange clips, and how far.
type clipping struct {
	fresh    map[place]Edit // receives the clips
	from, to int            // indexes of the messages, the end excluded
	levels   []int          // characters
	leaves   func(message int) bool
	enough   func() bool
	save     func(message, tokens int)
}

// clipRange clips results and arguments level by level, the oldest first, until it is enough. Of the step whose results
// the model has not answered, it clips what the assistant said, too.
func (p *planner) clipRange(c clipping) {
	for _, chars := range c.levels {
		for i := c.from; i < c.to; i++ {
			if c.leaves(i) {
				continue
			}
			unseen := p.points.isUnseen(i)
			for part, content := range p.v.Messages[i].Content {
				if !isClippable(content, p.v.Messages[i].Role) || content.Type == recall.Text && !unseen ||
					len(clippableText(content)) <= chars && len(content.Images) == 0 {
					continue
				}
				if c.enough() {
					return
				}
				if saved := p.clipPart(c.fresh, place{i, part}, chars); saved > 0 {
					c.save(i, saved)
				}
			}
		}
	}
}

// clipPart shows at most some characters of a part, and returns the tokens that this saves.
func (p *planner) clipPart(fresh map[place]Edit, at place, chars int) int {
	m := p.v.Messages[at.message]
	whole := p.size(at)
	was, again := p.editAt(fresh, at)
	noImages := chars == 0 && len(m.Content[at.part].Images) > 0
	if whole.chars <= chars && !noImages || again && was.isClip() && was.Chars <= chars {
		return 0
	}
	clip, shown := Edit{Position: m.Position, Part: at.part, Chars: chars}, whole.tokens
	if again {
		shown = p.v.editedTokens(m, was)
		clip.Kind, clip.Tail = was.Kind, was.Tail
	}
	if !clip.isClip() { // which shows none of the text
		if chars > 0 || was.Kind == Removed {
			return 0
		}
		clip.Kind, clip.Text = Stub, "cut"
	}
	saved := shown - p.v.editedTokens(m, clip)
	if saved > 0 {
		fresh[at] = clip
	}
	return saved
}
