package plan

import (
	"math"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall/tokens"
)

// planner holds the counts that a plan is made from.
type planner struct {
	v           clip.View
	settings    Settings
	window      int  // the view's window; endless if unknown
	goal, limit int  // in tokens
	below       int  // tokens above which the view is compacted again; at most limit
	tight       bool // the newest results alone exceed the room, and are clipped
	rests       bool // the goal comes from a policy's own trigger
	omits       bool // calls of the newest step may be left out, because it may not leave
	points      clip.CutPoints
	previous    int             // tokens of the view's summary
	pinned      []int           // indexes of messages that stay wherever the view is cut
	ratio       tokenmath.Ratio // a provider's tokens to ours, for messages that its report covers
	known       int             // number of messages that the report covers
	shown       []int           // tokens of each message
	sums        []int           // tokens of all messages before each; has one more entry than there are messages
	were        []int           // sums before this plan's clips
	edits       map[int][]clip.Edit
	fresh       map[clip.Place]clip.Edit // clips in groups that are too large for any window
	sizes       map[clip.Place]size      // sizes of clippable parts, once they were looked at
	format      *prose.Format            // the summary's format; nil: the settings'
	said        []int                    // tokens of quotes of the user before each message; nil: nothing is quoted
	carried     int                      // tokens of quotes in the previous summary
}

// ofSummary is the place of the summary.
var ofSummary = clip.Place{Message: -1}

// size is the size of a part in the log.
type size struct{ chars, tokens int }

// endless stands for an unknown window.
const endless = math.MaxInt / 16

func newPlanner(v clip.View, s Settings) *planner {
	p := &planner{v: v, settings: s, window: v.Window, points: clip.CutPointsOf(v.Messages), shown: clip.ShownTokens(v),
		edits: clip.EditsByPosition(v.Edits), fresh: map[clip.Place]clip.Edit{}, sizes: map[clip.Place]size{},
		ratio: tokenmath.Ratio{Num: 1, Den: 1}}
	if p.window <= 0 {
		p.window = endless
	}
	p.goal, p.limit = tokenmath.Share(s.Goal, p.window), s.Limit(p.window)
	p.below = p.limit
	p.previous = v.SummaryTokens(v.SummaryClip())
	p.pin()
	p.were = sums(p.shown)
	p.sums = p.were
	if v.Reported() {
		for p.known < len(v.Messages) && v.Messages[p.known].Position <= v.Usage.Position {
			p.known++
		}
		p.ratio = tokenmath.Of(v.Usage.PromptTokens, tokenmath.Add(tokenmath.Add(v.Fixed, p.previous), p.sums[p.known]))
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

// sums returns for each index the sum of all numbers before it, and at the end the sum of all.
func sums(of []int) []int {
	all := make([]int, len(of)+1)
	for i, n := range of {
		all[i+1] = tokenmath.Add(all[i], n)
	}
	return all
}

func (p *planner) size(place clip.Place) size {
	s, ok := p.sizes[place]
	if !ok {
		part := p.v.Messages[place.Message].Content[place.Part]
		s = size{chars: clip.ShownChars(part), tokens: p.v.WholePartTokens(part)}
		p.sizes[place] = s
	}
	return s
}

// quote sets the summary's format. If that quotes the user, it counts the quotes.
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

// editAt returns a part's clip: a fresh one, or else the view's.
func (p *planner) editAt(fresh map[clip.Place]clip.Edit, place clip.Place) (clip.Edit, bool) {
	if clip, ok := fresh[place]; ok {
		return clip, true
	}
	for _, clip := range p.edits[p.v.Messages[place.Message].Position] {
		if clip.Part == place.Part {
			return clip, true
		}
	}
	return clip.Edit{}, false
}
