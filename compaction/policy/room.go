package policy

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
)

// room returns the tokens that messages may take before the policy compacts; endless if the window is unknown and
// nothing counts tokens.
func room(v clip.View, at Moment) int {
	most := at.most(v)
	if most <= 0 {
		return math.MaxInt
	}
	return max(most-plan.FixedTokens(v), 0)
}

// withFree returns the tokens that a prompt may take if free tokens of the window stay free. At most half of what the
// fixed parts leave stays free; a quarter, if the window is too small for what is to stay free.
func withFree(v clip.View, free int) int {
	room := max(v.Window-v.Fixed, 0)
	if free >= room {
		return v.Window - room/4
	}
	return v.Window - min(free, room/2)
}

// bounded is a trigger that counts the tokens of a prompt.
type bounded interface {
	// most returns the tokens above which the trigger is due, in the trigger's own count.
	most(v clip.View, at Moment) int
	tokens(v clip.View, at Moment) int
}

// conjunction is a trigger that is due only if all of its triggers are.
type conjunction interface{ triggers() []Step }

// mostByAll returns the tokens above which all of the triggers are due; 0 if one of them does not count tokens.
func mostByAll(triggers []Step, v clip.View, at Moment) (most int) {
	for _, t := range triggers {
		n := mostBy([]Step{t}, v, at)
		if n == 0 {
			return 0
		}
		most = max(most, n)
	}
	return most
}

// mostBy returns the lowest number of tokens, by the caller's count, above which one of the triggers is due. It returns
// 0 if no trigger counts tokens.
func mostBy(steps []Step, v clip.View, at Moment) (most int) {
	for _, s := range steps {
		n := 0
		switch s := s.(type) {
		case conjunction:
			n = mostByAll(s.triggers(), v, at)
		case bounded:
			if n = s.most(v, at); v.Window <= 0 && !isWindowless(s) {
				n = 0
			}
			if by := s.tokens(v, at); by > 0 { // converts to the caller's count
				n = int(float64(n) * float64(at.tokens(v)) / float64(by))
			}
		}
		if n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// isWindowless reports whether a trigger counts tokens independently of the window.
func isWindowless(s Step) bool {
	_, is := s.(*Tokens)
	return is
}

// reserving is a trigger that names the tokens of the window that stay free.
type reserving interface{ reserves() }

// limit returns the tokens above which a view is compacted whatever the policy's triggers say. It is the trigger in the
// settings. If that is the default, a policy that reserves less of the window is not compacted earlier than it says.
func (at Moment) limit(v clip.View) int {
	set := at.settings()
	limit := set.Limit(v.Window)
	if set.Trigger < plan.Defaults().Trigger {
		return limit
	}
	for _, s := range at.steps {
		if _, is := s.(reserving); is {
			limit = max(limit, min(mostBy([]Step{s}, v, at), set.Most(v.Window)))
		}
	}
	return limit
}

// most returns the tokens above which the policy compacts a view, at most the limit; 0 if the window is unknown and
// nothing counts tokens.
func (at Moment) most(v clip.View) int {
	n := mostBy(at.steps, v, at)
	if v.Window <= 0 {
		return n
	}
	limit := at.limit(v)
	if n <= 0 {
		return limit
	}
	return min(n, limit)
}

// planCut plans a compaction that leaves the view clearly below the policy's trigger.
func planCut(v clip.View, at Moment, c plan.Cut) (plan.Plan, error) {
	c.Below = at.most(v)
	return plan.ByCut(v, at.settings(), c)
}

// kept returns how many tokens of recent messages a cutter keeps: want, but at most half of the room.
func kept(want int, v clip.View, at Moment) int { return min(want, room(v, at)/2) }

// recent returns the index of the message from which on the messages have want tokens; 0 if all together have fewer.
func recent(tokens []int, want int) int {
	for i, n := range slices.Backward(tokens) {
		if want -= n; want <= 0 {
			return i
		}
	}
	return 0
}

func sum(of []int) (n int) {
	for _, x := range of {
		n += x
	}
	return n
}
