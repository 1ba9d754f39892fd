package policy

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// CacheTTL prunes results once the provider's cache of the prompt has expired.
type CacheTTL struct {
	TTL            Duration `json:"ttl"`
	KeepAssistants int      `json:"keep_assistants" min:"0" max:"1000"`
	SoftShare      float64  `json:"soft_share" min:"0" max:"1"`
	HardShare      float64  `json:"hard_share" min:"0" max:"1"`
	HardClear      bool     `json:"hard_clear"`
	MinClearChars  int      `json:"min_clear_chars" min:"0" max:"100000000"`
	MinResultChars int      `json:"min_result_chars" min:"0" max:"100000000"`
	SoftMaxChars   int      `json:"soft_max_chars" min:"1" max:"100000000"`
	SoftHeadChars  int      `json:"soft_head_chars" min:"0" max:"100000000"`
	SoftTailChars  int      `json:"soft_tail_chars" min:"0" max:"100000000"`
	Tools          []string `json:"tools"`
	Except         []string `json:"except"`
}

func (*CacheTTL) describe() Mechanism {
	return Mechanism{Name: "cache_ttl", Stage: Prune, Source: "OpenClaw, context pruning",
		Words: "Shortens old results, and clears them if that is not enough, when the provider's cache has expired anyway.",
		Settings: map[string]string{
			"ttl": "How long no prompt was handed out until the cache counts as expired.",
			"keep_assistants": "How many of the newest messages of the assistant, and what follows the oldest of them, stay " +
				"as they are. If there are fewer, all stays.",
			"soft_share": "Below this share of the window, nothing is pruned.",
			"hard_share": "From this share of the window on, whole results are cleared, until less of it is used. 0 clears " +
				"as many as it may; hard_clear=false clears none.",
			"hard_clear": "Whether whole results are cleared.",
			"min_clear_chars": "Whole results are cleared only if all that could be cleared have this many characters " +
				"together.",
			"min_result_chars": "A result with fewer characters is never cleared.",
			"soft_max_chars":   "Longer results are shortened to soft_head_chars and soft_tail_chars.",
			"soft_head_chars":  "What is shown of a shortened result's beginning.",
			"soft_tail_chars":  "What is shown of a shortened result's end.",
			"tools":            "Tools whose results are pruned, with * for any characters. Empty: all.",
			"except":           "Tools whose results are not pruned, although tools names them.",
		},
		New: func() Step {
			return &CacheTTL{TTL: Duration(5 * time.Minute), KeepAssistants: 3, SoftShare: 0.3, HardShare: 0.5, HardClear: true,
				MinClearChars: 50_000, SoftMaxChars: 4000, SoftHeadChars: 1500, SoftTailChars: 1500}
		}}
}

// These are sizes in characters, as this mechanism counts them.
const (
	charsPerToken = 4
	charsPerImage = 8000
)

// Edits shortens results and then clears them, the oldest first.
func (c *CacheTTL) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	if c.TTL <= 0 || at.Touched.IsZero() || at.Idle() < time.Duration(c.TTL) || v.Window <= 0 {
		return nil
	}
	from, to, ok := c.prunable(v)
	if !ok {
		return nil
	}
	window := float64(v.Window * charsPerToken)
	total := viewChars(v)
	if float64(total)/window < c.SoftShare {
		return nil
	}
	var all []result
	sum := 0
	chars, changed := map[place]int{}, map[place]bool{}
	for r := range results(v) {
		if r.message < from || r.message >= to || len(r.p.Images) > 0 || !selects(c.Tools, c.Except, r.tool()) {
			continue
		}
		shown := r.shownChars()
		if soft, ok := c.shortened(r, shown); ok {
			r.edit, changed[r.place()] = &soft, true
			total -= shown
			shown = r.shownChars()
			total += shown
		}
		all = append(all, r)
		chars[r.place()] = shown
		sum += shown
	}
	if c.HardClear && sum >= c.MinClearChars {
		for i, r := range all {
			if float64(total)/window < c.HardShare {
				break
			}
			if r.hasText() && (c.MinResultChars == 0 || r.chars() >= c.MinResultChars) {
				stub := r.stub("cache_ttl", cleared)
				all[i].edit, changed[r.place()] = &stub, true
				total += all[i].shownChars() - chars[r.place()]
			}
		}
	}
	for _, r := range all {
		if changed[r.place()] {
			edits = append(edits, *r.edit)
		}
	}
	return edits
}

// shortened returns the edit that shortens a result; shown is how many characters of it are shown now.
func (c *CacheTTL) shortened(r result, shown int) (clip.Edit, bool) {
	chars := c.SoftHeadChars + c.SoftTailChars
	if chars == 0 || shown <= max(c.SoftMaxChars, chars) || !r.hasText() {
		return clip.Edit{}, false
	}
	return r.headAndTail("cache_ttl", c.SoftHeadChars, c.SoftTailChars), true
}

// prunable returns the range of messages with results that may be pruned: from the user's first message to the
// KeepAssistants newest of the assistant. ok is false if the assistant has sent fewer.
func (c *CacheTTL) prunable(v clip.View) (from, to int, ok bool) {
	from, to = len(v.Messages), len(v.Messages)
	for i, m := range v.Messages {
		if m.Role == recall.User {
			from = i
			break
		}
	}
	found := 0
	for i := len(v.Messages) - 1; i >= 0 && found < c.KeepAssistants; i-- {
		if v.Messages[i].Role == recall.Assistant {
			found++
			to = i
		}
	}
	return from, to, found == c.KeepAssistants
}

// viewChars returns the characters of a view's messages, as shown.
func viewChars(v clip.View) (n int) {
	edits := editsOf(v)
	for _, m := range v.Messages {
		for i, p := range m.Content {
			n += charsWith(p, edits[place{m.Position, i}])
		}
	}
	return n
}

// charsWith estimates the characters of a part that is shown with edit e, or whole if e is nil. It does not build the
// edited part.
func charsWith(p recall.Part, e *clip.Edit) int {
	switch {
	case e == nil:
		return partChars(p)
	case showsText(*e):
		return min(partChars(p), e.Chars+clipNoteChars)
	case e.Kind == clip.Removed:
		return 0
	}
	return len(e.Text) + hintChars
}

// Approximate characters of the note on a clip, and of the words around a text that stands for a part.
const (
	clipNoteChars = 100
	hintChars     = 20
)

func partChars(p recall.Part) int {
	n := tokens.Chars(p.Text) + tokens.Chars(p.Input) + len(p.Images)*charsPerImage
	if p.Type == recall.Image {
		n += charsPerImage
	}
	return n
}

// shownChars returns the characters of the result, as shown.
func (r result) shownChars() int { return charsWith(*r.p, r.edit) }
