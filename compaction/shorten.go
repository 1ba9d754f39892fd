package compaction

import (
	"maps"

	"github.com/loci-memory/loci/recall"
)

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
	c.fresh = maps.Clone(c.fresh)
	enough := func() bool { return c.tokens() <= target }
	c.clipRange(c.fresh, c.cut, len(c.v.Messages), levels, enough, func(i, saved int) {
		if i < c.known {
			c.old = max(c.old-saved, 0)
		} else {
			c.new = max(c.new-saved, 0)
		}
	})
}

// clipGroups clips results of groups from a cut on that alone are more than the room for messages, to three quarters of it: all before them
// would have to leave, and then they.
func (d *desk) clipGroups(cut int) {
	fixed := d.ratio.of(max(d.v.Fixed, 0))
	room := max(d.goal-fixed, (d.limit-fixed)/2) - d.budget(endless) - wrapperTokens
	for from, to := cut, cut; room > 0 && from < len(d.shown); from = to {
		for to++; d.groups.parts[to]; {
			to++
		}
		known := min(max(d.known, from), to)
		tokens := add(d.ratio.of(d.sums[known]-d.sums[from]), d.sums[to]-d.sums[known])
		if tokens <= room {
			continue
		}
		enough := func() bool { return tokens <= room/4*3 }
		d.clipRange(d.fresh, from, to, clipLevels, enough, func(i, saved int) {
			d.shown[i] -= saved
			if i < d.known {
				saved = d.ratio.of(saved)
			}
			tokens -= saved
		})
	}
	d.sums = sums(d.shown)
}

// clipRange clips results of the messages from one place to before another, level by level, the oldest first, until it is enough.
func (d *desk) clipRange(fresh map[place]Clip, from, to int, levels []int, enough func() bool, save func(message, tokens int)) {
	for _, chars := range levels {
		for i := from; i < to; i++ {
			for part, p := range d.v.Messages[i].Content {
				if p.Type != recall.ToolReturn || len(p.Text) <= chars {
					continue
				}
				if enough() {
					return
				}
				if saved := d.clipPart(fresh, place{i, part}, chars); saved > 0 {
					save(i, saved)
				}
			}
		}
	}
}

// clipPart shows at most so many characters of a result, and returns the tokens that saves.
func (d *desk) clipPart(fresh map[place]Clip, at place, chars int) int {
	m := d.v.Messages[at.message]
	whole := d.size(at)
	was, again := d.clipAt(fresh, at)
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

// clipAt is how a result is shown with these clips, if it is clipped.
func (d *desk) clipAt(fresh map[place]Clip, at place) (Clip, bool) {
	if clip, ok := fresh[at]; ok {
		return clip, true
	}
	for _, clip := range d.clips[d.v.Messages[at.message].Position] {
		if clip.Part == at.part {
			return clip, true
		}
	}
	return Clip{}, false
}
