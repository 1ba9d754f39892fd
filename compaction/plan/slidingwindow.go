package plan

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/tokenmath"
)

// strategy is a mode's way to plan. It removes the beginning of the view, up to the first cut after which the remaining
// view fits. If no cut is enough, it clips tool results in the remaining view.
type strategy struct {
	cuts     func(clip.CutPoints, Settings) []int // ascending indexes in the view; the last cut evicts most
	keepGoal bool                                 // leave a view alone that was compacted and is within the goal
	self     bool                                 // the agent's own model writes the summary
}

var strategies = map[Mode]strategy{
	SlidingWindow:            {cuts: slidingCuts, keepGoal: true},
	All:                      {cuts: allCuts},
	SelfCompactSlidingWindow: {cuts: slidingCuts, keepGoal: true, self: true},
	SelfCompactAll:           {cuts: allCuts, self: true},
}

// slidingCuts first evict the share of messages in the settings, and then 10 percent more each. The newest group always
// stays.
func slidingCuts(points clip.CutPoints, s Settings) []int {
	n := len(points.Inside) - 1
	last := points.Last()
	var cuts []int
	for step := 0; ; step++ {
		share := s.Percentage + float64(step)/10
		if share >= 1 {
			break
		}
		cuts = append(cuts, min(points.Before(int(share*float64(n)+tokenmath.Rounding)), last))
	}
	return slices.Compact(append(cuts, last))
}

// allCuts evict everything except what always stays.
func allCuts(points clip.CutPoints, _ Settings) []int { return []int{points.OpenCall} }
