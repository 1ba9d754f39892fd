package compaction

import (
	"maps"

	"github.com/loci-memory/loci/recall"
)

// clipLevels are the characters that are shown of results. One level is tried after the other until what stays fits:
// longer results are clipped first, and of these the oldest.
var clipLevels = []int{8000, 4000, 2000, 1000, 500}

// least returns the view after a cut with every result clipped as far as possible.
func (p *planner) least(cut int) candidate {
	c := p.at(cut)
	c.clip(-1, clipLevels[len(clipLevels)-1:])
	return c
}

// clip clips results in what stays until it takes no more than target.
func (c *candidate) clip(target int, levels []int) {
	c.fresh = maps.Clone(c.fresh)
	c.clipRange(clipping{fresh: c.fresh, from: c.cut, to: len(c.v.Messages), levels: levels,
		enough: func() bool { return c.tokens() <= target },
		save: func(i, saved int) {
			if i < c.known {
				c.old = max(c.old-saved, 0)
			} else {
				c.new = max(c.new-saved, 0)
			}
		}})
}

// clipGroups clips results after a cut in every group that alone exceeds the room for messages, to three quarters of
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

// clipping says which results clipRange clips, and how far.
type clipping struct {
	fresh    map[place]Clip // receives the clips
	from, to int            // indexes of the messages, the end excluded
	levels   []int          // characters
	enough   func() bool
	save     func(message, tokens int)
}

// clipRange clips results level by level, the oldest first, until it is enough.
func (p *planner) clipRange(c clipping) {
	for _, chars := range c.levels {
		for i := c.from; i < c.to; i++ {
			for part, content := range p.v.Messages[i].Content {
				if content.Type != recall.ToolReturn || len(content.Text) <= chars {
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

// clipPart shows at most some characters of a result, and returns the tokens that this saves.
func (p *planner) clipPart(fresh map[place]Clip, at place, chars int) int {
	m := p.v.Messages[at.message]
	whole := p.size(at)
	was, again := p.clipAt(fresh, at)
	if whole.chars <= chars || again && was.Chars <= chars {
		return 0
	}
	shown := whole.tokens
	if again {
		shown = clippedTokens(m, was)
	}
	clip := Clip{Position: m.Position, Part: at.part, Chars: chars}
	saved := shown - clippedTokens(m, clip)
	if saved > 0 {
		fresh[at] = clip
	}
	return saved
}

// clipAt returns the clip of a result: a fresh one, or else that of the view.
func (p *planner) clipAt(fresh map[place]Clip, at place) (Clip, bool) {
	if clip, ok := fresh[at]; ok {
		return clip, true
	}
	for _, clip := range p.clips[p.v.Messages[at.message].Position] {
		if clip.Part == at.part {
			return clip, true
		}
	}
	return Clip{}, false
}
