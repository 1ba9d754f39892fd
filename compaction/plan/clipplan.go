package plan

import (
	"maps"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
)

// These are the characters that clips leave. clipLevels apply to results and to arguments of calls. The levels are
// tried in turn until the view fits; at each level the oldest text is clipped first. If the view still does not fit,
// lowLevels follow. summaryLevels apply to a summary, until its message takes at most LeastSummary.
var (
	clipLevels    = []int{8000, 4000, 2000, 1000, 500}
	lowLevels     = []int{350, 250, 175, 125, 90, 60, 40, 20, 0}
	summaryLevels = append(slices.Clip(clipLevels), 200, 80)
)

// LeastSummary is the most tokens that the message of the shortest summary takes.
const LeastSummary = MinBudget + WrapperTokens

// least returns the candidate with everything clipped to the last of clipLevels.
func (p *planner) least(cut int) candidate {
	c := p.at(cut)
	c.clip(-1, clipLevels[len(clipLevels)-1:])
	return c
}

// squeeze shortens the summary and then clips to lowLevels, until the view takes at most target tokens.
func (c *candidate) squeeze(target int) {
	if c.evicted > 0 {
		c.quoted = max(c.quoted-max(c.tokens()-max(target, 0), 0), 0)
		c.budget = max(c.budget-max(c.tokens()-max(target, 0), 0), min(c.budget, MinBudget))
	} else if c.v.Summary != nil {
		for _, chars := range summaryLevels {
			clip := clip.Edit{Chars: chars}
			if before := c.summary(); c.tokens() > target && before > LeastSummary && c.v.SummaryTokens(&clip) < before {
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

// clip clips the remaining messages until the view takes at most target tokens.
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

// clipGroups clips each group of messages that alone exceeds the room for messages, to three quarters of that room.
// Without that, all messages before the group would have to leave, and then the group itself. The newest results, which
// the model has not read, get the room up to the trigger.
func (p *planner) clipGroups(cut int) {
	fixed := p.ratio.Of(max(p.v.Fixed, 0))
	beside := p.budget(endless) + WrapperTokens
	for from, to := cut, cut; from < len(p.shown); from = to {
		for to++; p.points.Inside[to]; {
			to++
		}
		room := max(p.goal-fixed, (p.limit-fixed)/2) - beside
		most := room / 4 * 3
		unread := p.points.IsUnseen(to - 1)
		if unread {
			if room = p.below - fixed - beside; p.at(from).evicted == 0 { // no new summary
				room = p.below - fixed - p.previous
			}
			most = room - room/20
		}
		if room <= 0 {
			continue
		}
		known := min(max(p.known, from), to)
		tokens := tokenmath.Add(p.ratio.Of(p.sums[known]-p.sums[from]), p.sums[to]-p.sums[known])
		if p.tight = p.tight || unread && (tokens > room || p.clippedIn(from, to)); tokens <= room {
			continue
		}
		p.clipRange(clipping{fresh: p.fresh, from: from, to: to, levels: clipLevels,
			leaves: func(int) bool { return false },
			enough: func() bool { return tokens <= most },
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

// clippedIn reports whether an earlier plan has clipped messages from … to.
func (p *planner) clippedIn(from, to int) bool {
	return slices.ContainsFunc(p.v.Messages[from:to], func(m recall.Message) bool {
		return slices.ContainsFunc(p.edits[m.Position], func(e clip.Edit) bool { return e.IsClip() && e.Step == "" })
	})
}

// clipping says what clipRange clips, and how far.
type clipping struct {
	fresh    map[clip.Place]clip.Edit // receives the clips
	from, to int                      // range of message indexes; to is exclusive
	levels   []int                    // characters
	leaves   func(message int) bool
	enough   func() bool
	save     func(message, tokens int)
}

// clipRange clips results and arguments, level by level and the oldest first, until enough returns true. In the newest
// step, if the model has not answered its results, it also clips the assistant's text. The part that is clipped last
// gets the characters that are left.
func (p *planner) clipRange(c clipping) {
	last := func() {}
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
					last()
					return
				}
				place := clip.Place{Message: i, Part: part}
				shown := p.charsAt(c.fresh, place)
				if saved := p.clipPart(c.fresh, place, chars); saved > 0 {
					c.save(i, saved)
					last = func() { p.widen(c, place, chars, shown) }
				}
			}
		}
	}
}

// charsAt returns how many characters a part shows.
func (p *planner) charsAt(fresh map[clip.Place]clip.Edit, place clip.Place) int {
	if e, ok := p.editAt(fresh, place); ok {
		return e.Chars
	}
	return p.size(place).chars
}

// widen shows more of a part than chars characters, as long as enough returns true. It showed less than most before.
func (p *planner) widen(c clipping, place clip.Place, chars, most int) {
	e, ok := c.fresh[place]
	if !ok || !e.IsClip() || chars == 0 {
		return
	}
	m := p.v.Messages[place.Message]
	takes := p.v.EditedTokens(m, e)
	for fits := chars; most-fits > max(fits/widest, leastWidening); {
		wider := e
		wider.Chars, wider.Tokens = fits+(most-fits)/2, 0
		grows := p.v.EditedTokens(m, wider) - takes
		c.save(place.Message, -grows)
		if grows < 0 || !c.enough() {
			c.save(place.Message, grows)
			most = wider.Chars
			continue
		}
		fits, takes, c.fresh[place] = wider.Chars, takes+grows, wider
	}
}

// widen stops when a part can grow by less than one part in widest, or by leastWidening characters.
const (
	widest        = 32
	leastWidening = 64
)

// clipPart clips a part to chars characters, and returns the saved tokens.
func (p *planner) clipPart(fresh map[clip.Place]clip.Edit, place clip.Place, chars int) int {
	m := p.v.Messages[place.Message]
	whole := p.size(place)
	current, again := p.editAt(fresh, place)
	noImages := chars == 0 && len(m.Content[place.Part].Images) > 0
	if whole.chars <= chars && !noImages || again && current.IsClip() && current.Chars <= chars {
		return 0
	}
	trim, shown := clip.Edit{Position: m.Position, Part: place.Part, Chars: chars}, whole.tokens
	if again {
		shown = p.v.EditedTokens(m, current)
		trim.Kind, trim.Tail = current.Kind, current.Tail
	}
	if !trim.IsClip() { // the edit shows none of the text
		if chars > 0 || current.Kind == clip.Removed {
			return 0
		}
		trim.Kind, trim.Text = clip.Stub, "cut"
	}
	saved := shown - p.v.EditedTokens(m, trim)
	if saved > 0 {
		fresh[place] = trim
	}
	return saved
}
