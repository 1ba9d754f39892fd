package lab

import (
	"slices"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/recall"
)

// Kind names what an entity is.
type Kind string

// The kinds of entities.
const (
	Path   Kind = "paths"   // of files, and addresses
	Number Kind = "numbers" // amounts, dates, versions
	Name   Kind = "names"   // identifiers, and ids
)

// Kinds lists the kinds.
var Kinds = []Kind{Path, Number, Name}

// use is an entity that an answer uses, and the messages before it that have the entity.
type use struct {
	entity string
	kind   Kind
	in     []int // indexes of messages, ascending
}

// usesOf returns, by message, what each answer uses of what others said before: their paths, numbers, and names.
func usesOf(messages []recall.Message) [][]use {
	seen := map[string][]int{}
	all := make([][]use, len(messages))
	for i, m := range messages {
		found := compaction.Identifiers(spoken(m))
		if m.Role == recall.Assistant {
			for _, entity := range found {
				if in := seen[entity]; len(in) > 0 {
					all[i] = append(all[i], use{entity, kindOf(entity), slices.Clone(in)})
				}
			}
		}
		for _, entity := range found {
			seen[entity] = append(seen[entity], i)
		}
	}
	return all
}

// spoken returns all that a message says, calls, and returns.
func spoken(m recall.Message) string {
	var b strings.Builder
	for _, p := range m.Content {
		for _, text := range []string{p.Text, p.Name, p.Input} {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// kindOf tells what an entity is from its signs.
func kindOf(entity string) Kind {
	if strings.ContainsAny(entity, "/\\") {
		return Path
	}
	if !strings.ContainsFunc(entity, unicode.IsLetter) {
		return Number
	}
	if at := strings.LastIndexByte(entity, '.'); at > 0 && len(entity)-at <= 5 && !strings.ContainsAny(entity[at:], "()") {
		return Path
	}
	return Name
}

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
func (e Evidence) Share() float64 {
	if e.Total() == 0 {
		return 1
	}
	return float64(e.InView) / float64(e.Total())
}

// Missing is a use of an entity that was not in view.
type Missing struct {
	Position int    `json:"position"` // of the answer
	Entity   string `json:"entity"`
	Kind     Kind   `json:"kind"`
	Newest   int    `json:"newest"` // position of the newest message before that has it
	Where    string `json:"where"`  // expand, search, or lost
}

// sight is what a view shows, for looking entities up.
type sight struct {
	shown   map[int]string // of edited messages, by position
	visible map[int]bool   // by position
	summary string
}

func sightOf(v compaction.View) sight {
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
	for _, m := range compaction.Shown(of, v.Edits) {
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
