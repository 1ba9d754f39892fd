package lab

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Evidence counts uses of entities by where each entity was when an answer used it.
type Evidence struct {
	InView int `json:"in_view"`
	Expand int `json:"expand"` // in a message that is shown shortened; its marker says how to read it
	Search int `json:"search"` // behind the summary; its range can be read or searched
	Lost   int `json:"lost"`   // nothing in view leads there
}

// inView says that the prompt showed the entity. The other places are expand, search and lost.
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

// Share returns the share of uses that were in view; 1 if there are none.
func (e Evidence) Share() float64 { return e.share(e.InView) }

// ReachableShare returns the share of uses that were in view, or one call of expand or one search away.
func (e Evidence) ReachableShare() float64 { return e.share(e.Total() - e.Lost) }

// InViewText returns Share in percent; a dash if there are no uses.
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
	Position int    `json:"position"` // position of the answer
	Entity   string `json:"entity"`
	Kind     Kind   `json:"kind"`
	First    int    `json:"first"`   // position of the first message with the entity
	Newest   int    `json:"newest"`  // position of the newest earlier message with the entity
	Where    string `json:"where"`   // expand, search, or lost
	Excerpt  string `json:"excerpt"` // of that message, around the entity
}

// excerptChars is how many characters an excerpt shows before and after the entity.
const excerptChars = 80

// excerpt returns the text of a message around an entity, on one line. If the message as a whole is the evidence, it
// returns the beginning.
func excerpt(m recall.Message, entity string) string {
	text := []rune(strings.Join(strings.Fields(spoken(m)), " "))
	position := max(strings.Index(string(text), entity), 0)
	position = utf8.RuneCountInString(string(text)[:position])
	from, to := max(position-excerptChars, 0), min(position+utf8.RuneCountInString(entity)+excerptChars, len(text))
	short := string(text[from:to])
	if from > 0 {
		short = "…" + short
	}
	if to < len(text) {
		short += "…"
	}
	return short
}

// sight is what a view shows, in a form for looking up entities.
type sight struct {
	shown   map[int]string // texts of edited messages, by position
	visible map[int]bool   // positions of messages in the view
	summary string
}

func sightOf(v clip.View) sight {
	s := sight{shown: map[int]string{}, visible: make(map[int]bool, len(v.Messages)), summary: v.SummaryText()}
	edited := map[int]bool{}
	for _, e := range v.Edits {
		edited[e.Position] = true
	}
	var messages []recall.Message
	for _, m := range v.Messages {
		s.visible[m.Position] = true
		if edited[m.Position] {
			messages = append(messages, m)
		}
	}
	for _, m := range clip.Shown(messages, v.Edits) {
		s.shown[m.Position] = spoken(m)
	}
	return s
}

// whole returns where a message is, if all of it is needed.
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
