package compaction

import (
	"math"

	"github.com/loci-memory/loci/recall/tokens"
)

// desk is what planning a view needs, counted once.
type desk struct {
	v           View
	settings    Settings
	window      int // the view's, or a very large one if that is not known
	goal, limit int
	groups      groups
	ratio       ratio // of a provider's tokens to ours, in the messages that its report covers
	known       int   // how many these are
	shown       []int // tokens of each message
	sums        []int // of the messages before each; one more than there are messages
	were        []int // the same, before clips of this plan
	clips       map[int][]Clip
	fresh       map[place]Clip // of groups that fit no window whole
	sizes       map[place]size // of results, as they are looked at
}

// size is that of a result in the log.
type size struct{ chars, tokens int }

func (d *desk) size(at place) size {
	s, ok := d.sizes[at]
	if !ok {
		p := d.v.Messages[at.message].Content[at.part]
		s = size{chars: shownChars(p), tokens: tokens.Estimate(p.Text)}
		d.sizes[at] = s
	}
	return s
}

// endless stands for a window that is not known.
const endless = math.MaxInt / 16

func newDesk(v View, s Settings) *desk {
	d := &desk{v: v, settings: s, window: v.Window, groups: groupsOf(v.Messages), shown: shownTokens(v), clips: clipsOf(v.Clips),
		fresh: map[place]Clip{}, sizes: map[place]size{}}
	if d.window <= 0 {
		d.window = endless
	}
	d.goal, d.limit = share(s.Goal, d.window), share(s.Trigger, d.window)
	d.were = sums(d.shown)
	d.sums = d.were
	d.ratio = ratio{1, 1}
	if v.reported() {
		for d.known < len(v.Messages) && v.Messages[d.known].Position <= v.Usage.Position {
			d.known++
		}
		d.ratio = ratioOf(v.Usage.PromptTokens, add(add(v.Fixed, d.previous()), d.sums[d.known]))
	}
	return d
}

// sums are those of the numbers before each, and of all.
func sums(of []int) []int {
	all := make([]int, len(of)+1)
	for i, n := range of {
		all[i+1] = add(all[i], n)
	}
	return all
}

func (d *desk) previous() int {
	if d.v.Summary == nil {
		return 0
	}
	return max(d.v.Summary.Tokens, 0)
}

// candidate is a cut of a view, and the clips in what stays.
type candidate struct {
	*desk
	cut     int
	kept    bool // the newest message of the user stays though it is before the cut
	evicted int
	left    int // tokens that left
	old     int // tokens that stay and a report covers, in ours
	new     int // tokens that stay, of later messages
	budget  int
	fresh   map[place]Clip // as the desk's, and more
}

// place is that of a part in the view.
type place struct{ message, part int }

func (d *desk) at(cut int) candidate {
	c := candidate{desk: d, cut: cut, kept: d.groups.user >= 0 && d.groups.user < cut, evicted: cut, left: d.were[cut], fresh: d.fresh}
	all, known := d.sums[len(d.shown)], d.sums[d.known]
	c.old = known - d.sums[min(cut, d.known)]
	c.new = all - known - (d.sums[cut] - d.sums[min(cut, d.known)])
	if c.kept {
		tokens := d.shown[d.groups.user]
		c.evicted--
		c.left -= tokens
		if d.groups.user < d.known {
			c.old += tokens
		} else {
			c.new += tokens
		}
	}
	if c.evicted > 0 {
		c.budget = d.budget(c.left)
	}
	return c
}

// leaves tells whether the message at a place is before the cut and does not stay.
func (c candidate) leaves(i int) bool { return i < c.cut && (!c.kept || i != c.groups.user) }

// wrapperTokens is what the message that shows a summary takes beside its text, at most.
const wrapperTokens = 80

// budget is what the text of a summary may take of which so many tokens leave: no more than a tenth of the window, a quarter of what the
// fixed parts leave of it below the trigger, and a quarter token for each character that the settings allow; and less than what it stands
// for.
func (d *desk) budget(left int) int {
	most := min(d.window/10, (d.limit-d.ratio.of(max(d.v.Fixed, 0)))/4, add(d.previous(), left/2))
	if d.settings.ClipChars != nil {
		most = min(most, *d.settings.ClipChars/4)
	}
	return max(most, 1)
}

// tokens estimates the view after the cut.
func (c candidate) tokens() int {
	if c.evicted == 0 {
		return add(c.ratio.of(add(add(c.v.Fixed, c.previous()), c.old)), c.new)
	}
	return add(add(c.ratio.of(add(c.v.Fixed, c.old)), c.new), c.budget+wrapperTokens)
}

// counted is the view after the cut without regard to a report.
func (c candidate) counted() int {
	summary := c.previous()
	if c.evicted > 0 {
		summary = c.budget + wrapperTokens
	}
	return add(add(c.v.Fixed, summary), add(c.old, c.new))
}

// worth tells whether a plan makes fewer messages of the view, or is needed.
func (c candidate) worth(before, target int) bool {
	replaced := c.evicted
	if c.v.Summary != nil {
		replaced++
	}
	return c.evicted > 0 && (replaced > 1 || before > target)
}
