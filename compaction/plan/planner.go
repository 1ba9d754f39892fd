package plan

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall/tokens"
)

// strategy says how a mode plans: it evicts the beginning of a view, up to the first of its cuts after which the rest
// fits. If none fits, tool results in what stays are clipped.
type strategy struct {
	cuts     func(clip.CutPoints, Settings) []int // ascending indexes in the view; the last evicts most
	keepGoal bool                                 // a view that was compacted and is within the goal is left alone
	self     bool                                 // the agent's own model writes the summary
}

// strategies are those of the modes.
var strategies = map[Mode]strategy{
	SlidingWindow:            {cuts: slidingCuts, keepGoal: true},
	All:                      {cuts: allCuts},
	SelfCompactSlidingWindow: {cuts: slidingCuts, keepGoal: true, self: true},
	SelfCompactAll:           {cuts: allCuts, self: true},
}

// slidingCuts evict the share of the messages that the settings name, then 10 percent of them more, and so on. The
// newest group always stays.
func slidingCuts(points clip.CutPoints, s Settings) []int {
	n := len(points.Inside) - 1
	last := points.Last()
	var cuts []int
	for step := 0; ; step++ {
		of := s.Percentage + float64(step)/10
		if of >= 1 {
			break
		}
		cuts = append(cuts, min(points.Before(int(of*float64(n)+ratio.Rounding)), last))
	}
	return slices.Compact(append(cuts, last))
}

// allCuts evict everything but what stays wherever the view is cut.
func allCuts(points clip.CutPoints, _ Settings) []int { return []int{points.OpenCall} }

// planner holds the counts of a view from which a plan is made.
type planner struct {
	v           clip.View
	settings    Settings
	window      int  // the view's, or endless if it is unknown
	goal, limit int  // tokens
	below       int  // tokens above which the view is compacted again; at most limit
	rests       bool // the goal is that of a policy's own trigger
	points      clip.CutPoints
	previous    int         // tokens of the view's summary
	pinned      []int       // indexes of the messages that stay wherever the view is cut
	ratio       ratio.Ratio // of a provider's tokens to ours, in the messages that its report covers
	known       int         // number of messages that the report covers
	shown       []int       // tokens of each message
	sums        []int       // of the messages before each; one more than there are messages
	were        []int       // sums before the clips of this plan
	edits       map[int][]clip.Edit
	fresh       map[clip.Place]clip.Edit // of groups that are too large for any window
	sizes       map[clip.Place]size      // of what can be clipped, once it was looked at
	format      *prose.Format            // of the summary; nil: that of the settings
	said        []int                    // tokens of the user's messages before each, as quoted; nil: none is
	carried     int                      // tokens of those that the summary before quotes
}

// ofSummary is the place of the summary.
var ofSummary = clip.Place{Message: -1}

// size is the size of a part in the log.
type size struct{ chars, tokens int }

// endless is the size of a window that is unknown.
const endless = math.MaxInt / 16

func newPlanner(v clip.View, s Settings) *planner {
	p := &planner{v: v, settings: s, window: v.Window, points: clip.CutPointsOf(v.Messages), shown: clip.ShownTokens(v),
		edits: clip.EditsByPosition(v.Edits), fresh: map[clip.Place]clip.Edit{}, sizes: map[clip.Place]size{},
		ratio: ratio.Ratio{Num: 1, Den: 1}}
	if p.window <= 0 {
		p.window = endless
	}
	p.goal, p.limit = ratio.Share(s.Goal, p.window), s.Limit(p.window)
	p.below = p.limit
	p.previous = v.SummaryTokens(v.SummaryClip())
	p.pin()
	p.were = sums(p.shown)
	p.sums = p.were
	if v.Reported() {
		for p.known < len(v.Messages) && v.Messages[p.known].Position <= v.Usage.Position {
			p.known++
		}
		p.ratio = ratio.Of(v.Usage.PromptTokens, ratio.Add(ratio.Add(v.Fixed, p.previous), p.sums[p.known]))
	}
	return p
}

// pin notes which messages stay wherever the view is cut.
func (p *planner) pin() {
	p.pinned = nil
	for i := range p.v.Messages {
		if p.points.Stays(i) {
			p.pinned = append(p.pinned, i)
		}
	}
}

// sums returns the sum of the numbers before each, and of all.
func sums(of []int) []int {
	all := make([]int, len(of)+1)
	for i, n := range of {
		all[i+1] = ratio.Add(all[i], n)
	}
	return all
}

func (p *planner) size(at clip.Place) size {
	s, ok := p.sizes[at]
	if !ok {
		part := p.v.Messages[at.Message].Content[at.Part]
		s = size{chars: clip.ShownChars(part), tokens: p.v.WholePartTokens(part)}
		p.sizes[at] = s
	}
	return s
}

// quote lets the summary of the plan have a format.
func (p *planner) quote(f *prose.Format) {
	if p.format = f; !f.QuotesUser() {
		return
	}
	each := make([]int, len(p.v.Messages))
	for i, m := range p.v.Messages {
		if q, ok := prose.QuotationOf(m); ok {
			each[i] = tokens.Estimate(q.Line + "\n")
		}
	}
	p.said = sums(each)
	if p.v.Summary != nil {
		p.carried = prose.QuotationTokens(p.v.Summary.Text)
	}
}

// editAt returns the clip of a part: a fresh one, or else that of the view.
func (p *planner) editAt(fresh map[clip.Place]clip.Edit, at clip.Place) (clip.Edit, bool) {
	if clip, ok := fresh[at]; ok {
		return clip, true
	}
	for _, clip := range p.edits[p.v.Messages[at.Message].Position] {
		if clip.Part == at.Part {
			return clip, true
		}
	}
	return clip.Edit{}, false
}
