package lab

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Evidence counts the uses of entities by where they were when an answer used them.
type Evidence struct {
	InView int `json:"in_view"`
	Expand int `json:"expand"` // in a message that is shown with less, whose mark says how to read it
	Search int `json:"search"` // behind the summary, whose range is read or searched
	Lost   int `json:"lost"`   // nothing in view leads there
}

// inView says that a prompt showed what was used. The other places are expand, search and lost.
const inView = "in view"

// count counts a use by its place.
func (e *Evidence) count(where string) {
	switch where {
	case inView:
		e.InView++
	case "expand":
		e.Expand++
	case "search":
		e.Search++
	default:
		e.Lost++
	}
}

// Total returns the number of uses.
func (e Evidence) Total() int { return e.InView + e.Expand + e.Search + e.Lost }

// Share returns the share of the uses that were in view; 1 without uses.
func (e Evidence) Share() float64 { return e.share(e.InView) }

// ReachableShare returns the share of the uses that were in view, or one call of expand or a search away.
func (e Evidence) ReachableShare() float64 { return e.share(e.Total() - e.Lost) }

// InViewText returns Share in percent; a dash without uses.
func (e Evidence) InViewText() string {
	if e.Total() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*e.Share())
}

func (e Evidence) share(n int) float64 {
	if e.Total() == 0 {
		return 1
	}
	return float64(n) / float64(e.Total())
}

// Missing is a use of an entity that was not in view.
type Missing struct {
	Position int    `json:"position"` // of the answer
	Entity   string `json:"entity"`
	Kind     Kind   `json:"kind"`
	First    int    `json:"first"`   // position of the first message that has it
	Newest   int    `json:"newest"`  // position of the newest message before that has it
	Where    string `json:"where"`   // expand, search, or lost
	Excerpt  string `json:"excerpt"` // of that message, around it
}

// excerptChars is what an excerpt shows before and after an entity.
const excerptChars = 80

// excerpt returns the text of a message around an entity, on one line; its beginning if the message is all that is
// asked for.
func excerpt(m recall.Message, entity string) string {
	text := []rune(strings.Join(strings.Fields(spoken(m)), " "))
	at := max(strings.Index(string(text), entity), 0)
	at = utf8.RuneCountInString(string(text)[:at])
	from, to := max(at-excerptChars, 0), min(at+utf8.RuneCountInString(entity)+excerptChars, len(text))
	short := string(text[from:to])
	if from > 0 {
		short = "…" + short
	}
	if to < len(text) {
		short += "…"
	}
	return short
}

// sight is what a view shows, for looking entities up.
type sight struct {
	shown   map[int]string // of edited messages, by position
	visible map[int]bool   // by position
	summary string
}

func sightOf(v clip.View) sight {
	s := sight{shown: map[int]string{}, visible: make(map[int]bool, len(v.Messages)), summary: v.SummaryText()}
	edited := map[int]bool{}
	for _, e := range v.Edits {
		edited[e.Position] = true
	}
	var of []recall.Message
	for _, m := range v.Messages {
		s.visible[m.Position] = true
		if edited[m.Position] {
			of = append(of, m)
		}
	}
	for _, m := range clip.Shown(of, v.Edits) {
		s.shown[m.Position] = spoken(m)
	}
	return s
}

// whole returns where a message is that has to be read whole.
func (s sight) whole(m recall.Message) string {
	_, edited := s.shown[m.Position]
	switch {
	case s.visible[m.Position] && !edited:
		return inView
	case s.visible[m.Position]:
		return "expand"
	case s.summary != "":
		return "search"
	}
	return "lost"
}

// where returns where the entity of a use is.
func (s sight) where(u use, messages []recall.Message) string {
	best := "lost"
	if s.summary != "" {
		best = "search"
	}
	for _, i := range u.in {
		position := messages[i].Position
		shown, edited := s.shown[position]
		switch {
		case !s.visible[position]:
		case !edited, strings.Contains(shown, u.entity):
			return inView
		default:
			best = "expand"
		}
	}
	if strings.Contains(s.summary, u.entity) {
		return inView
	}
	return best
}
