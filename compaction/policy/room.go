package policy

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/compaction"
)

// room returns the tokens that messages may take below the trigger of the agent's settings; endless for a window that
// is unknown.
func room(v compaction.View, at Moment) int {
	if v.Window <= 0 {
		return math.MaxInt
	}
	return max(at.settings().Limit(v.Window)-compaction.FixedTokens(v), 0)
}

// kept returns the tokens of recent messages that a cutter keeps: as many as it wants, and at most half of the room.
func kept(want int, v compaction.View, at Moment) int { return min(want, room(v, at)/2) }

// recent returns the index of the message with which the newest messages reach some tokens, and 0 if all are fewer.
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
