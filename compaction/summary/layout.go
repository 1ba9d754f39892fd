package summary

import (
	"github.com/loci-memory/loci/compaction/prose"
	"slices"
	"strings"
)

// extractedNames are the names by which formats refer to the sections of an extraction.
var extractedNames = [sectionCount]string{"earlier", "requests", "told", "decisions", "findings", "open", "errors",
	"named", "calls", "state", "next"}

// layout is the order of an extraction's sections, with their headings.
type layout struct {
	titles [sectionCount]string
	groups [][]section // sections with the same title
	next   bool        // it has the section next
	forms  bool        // a format asks for the sections
}

// layoutOf returns the layout of a format; nil is Loci's. Sections that the format lacks keep Loci's headings and come
// last.
func layoutOf(f *prose.Format) layout {
	l := layout{titles: titles, forms: f != nil}
	used := [sectionCount]bool{}
	if f != nil {
		for _, s := range f.Sections {
			var group []section
			for _, name := range s.From {
				if i := slices.Index(extractedNames[:], name); i >= 0 && !used[i] {
					group, used[i], l.titles[i] = append(group, section(i)), true, s.Heading
				}
			}
			l.groups = append(l.groups, group)
		}
	}
	l.next = used[next]
	for i := range sectionCount {
		if !used[i] && i != next {
			l.groups = append(l.groups, []section{i})
		}
	}
	return l
}

// sectionsOf returns the sections under a heading; nil if the layout lacks the heading.
func (l layout) sectionsOf(heading string) []section {
	for _, group := range l.groups {
		if len(group) > 0 && l.titles[group[0]] == heading {
			return group
		}
	}
	return nil
}

// sectionOfLine returns the section of a line under a heading that several sections share. line has no number.
func sectionOfLine(group []section, line string) section {
	has := func(s section) bool { return slices.Contains(group, s) }
	switch {
	case len(group) == 1:
		return group[0]
	case has(state) && (strings.HasPrefix(line, "assistant: ") || strings.HasPrefix(line, "last result of ")):
		return state
	}
	for _, general := range []section{requests, findings, told, decisions, open} {
		if !has(general) {
			continue
		}
		if found := sectionIn(prose.SentenceOf(line), general); has(found) && trust[general] > 0 {
			return found
		}
		return general
	}
	return group[0]
}
