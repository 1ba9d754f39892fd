package plan

import (
	"maps"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall"
)

// clipLevels are the characters that are shown of results and of the arguments of calls. One level is tried after the
// other until what stays fits: longer texts are clipped first, and of these the oldest. lowLevels follow if a view does
// not fit otherwise. summaryLevels are those of a summary, until its message takes no more than LeastSummary.
var (
	clipLevels    = []int{8000, 4000, 2000, 1000, 500}
	lowLevels     = []int{350, 250, 175, 125, 90, 60, 40, 20, 0}
	summaryLevels = append(slices.Clip(clipLevels), 200, 80)
)

// LeastSummary bounds the tokens of the message of the shortest summary.
const LeastSummary = MinBudget + WrapperTokens

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
			clip := clip.Edit{Chars: chars}
			if was := c.summary(); c.tokens() > target && was > LeastSummary && c.v.SummaryTokens(&clip) < was {
				c.fresh = maps.Clone(c.fresh)
				c.fresh[ofSummary] = clip
			}
		}
	}
	c.clip(target, lowLevels)
	if shortest := (clip.Edit{}); c.evicted == 0 && c.tokens() > c.settings.Most(c.window) &&
		c.v.SummaryTokens(&shortest) < c.summary() {
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
	fixed := p.ratio.Of(max(p.v.Fixed, 0))
	room := max(p.goal-fixed, (p.limit-fixed)/2) - p.budget(endless) - WrapperTokens
	for from, to := cut, cut; room > 0 && from < len(p.shown); from = to {
		for to++; p.points.Inside[to]; {
			to++
		}
		known := min(max(p.known, from), to)
		tokens := ratio.Add(p.ratio.Of(p.sums[known]-p.sums[from]), p.sums[to]-p.sums[known])
		if tokens <= room {
			continue
		}
		p.clipRange(clipping{fresh: p.fresh, from: from, to: to, levels: clipLevels,
			leaves: func(int) bool { return false },
			enough: func() bool { return tokens <= room/4*3 },
			save: func(i, saved int) {
				p.shown[i] -= saved
				if i < p.known {
					saved = p.ratio.Of(saved)
				}
				tokens -= saved
			}})
	}
	p.sums = sums(p.shown)
}

// clipping says what clipRange clips, and how far.
type clipping struct {
	fresh    map[clip.Place]clip.Edit // receives the clips
	from, to int                      // indexes of the messages, the end excluded
	levels   []int                    // characters
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
			unseen := p.points.IsUnseen(i)
			for part, content := range p.v.Messages[i].Content {
				if !clip.IsClippable(content, p.v.Messages[i].Role) || content.Type == recall.Text && !unseen ||
					len(clip.ClippableText(content)) <= chars && len(content.Images) == 0 {
					continue
				}
				if c.enough() {
					return
				}
				if saved := p.clipPart(c.fresh, clip.Place{Message: i, Part: part}, chars); saved > 0 {
					c.save(i, saved)
				}
			}
		}
	}
}

// clipPart shows at most some characters of a part, and returns the tokens that this saves.
func (p *planner) clipPart(fresh map[clip.Place]clip.Edit, at clip.Place, chars int) int {
	m := p.v.Messages[at.Message]
	whole := p.size(at)
	was, again := p.editAt(fresh, at)
	noImages := chars == 0 && len(m.Content[at.Part].Images) > 0
	if whole.chars <= chars && !noImages || again && was.IsClip() && was.Chars <= chars {
		return 0
	}
	trim, shown := clip.Edit{Position: m.Position, Part: at.Part, Chars: chars}, whole.tokens
	if again {
		shown = p.v.EditedTokens(m, was)
		trim.Kind, trim.Tail = was.Kind, was.Tail
	}
	if !trim.IsClip() { // which shows none of the text
		if chars > 0 || was.Kind == clip.Removed {
			return 0
		}
		trim.Kind, trim.Text = clip.Stub, "cut"
	}
	saved := shown - p.v.EditedTokens(m, trim)
	if saved > 0 {
		fresh[at] = trim
	}
	return saved
}
