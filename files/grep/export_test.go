package grep

import (
	"fmt"
	"iter"
	"regexp/syntax"
	"slices"
	"strings"
)

// FileMatches is the result of a search in one file.
type FileMatches struct {
	Total   int  // matching lines, at most Cap
	More    bool // there are more than Cap
	Matches []Match
}

// MatchRange selects matching lines of a file: Take lines after the first Skip, each with Context lines before and
// after it.
type MatchRange struct{ Context, Skip, Take, Cap int }

// File searches one file as Grep does.
func (p *Pattern) File(segments iter.Seq2[Segment, error], want MatchRange) (FileMatches, error) {
	matches, err := p.matchIn(segments, want.Cap+1)
	if err != nil {
		return FileMatches{}, err
	}
	found := FileMatches{Total: min(len(matches), want.Cap), More: len(matches) > want.Cap}
	matches = matches[:found.Total]
	for _, m := range matches[min(want.Skip, len(matches)):min(want.Skip+want.Take, len(matches))] {
		if want.Context > 0 {
			if m.Before, m.After, err = linesAround(segments, m.Line, want.Context); err != nil {
				return FileMatches{}, err
			}
		}
		found.Matches = append(found.Matches, m)
	}
	return found, nil
}

// Required returns what the pattern requires of the index, or "".
func (p *Pattern) Required() string {
	if p.grams == nil {
		return ""
	}
	return p.grams.required.String()
}

func (r *required) String() string {
	if r.text != "" {
		return fmt.Sprintf("%q", r.text)
	}
	parts, sign := r.all, " & "
	if len(r.any) > 0 {
		parts, sign = r.any, " | "
	}
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p.String()
	}
	return "(" + strings.Join(list, sign) + ")"
}

// MayMatch reports whether the index lets a unit with this text pass.
func (p *Pattern) MayMatch(text string) bool {
	if p.grams == nil {
		return true
	}
	set := new(gramSet)
	set.add(text)
	all := gramRows([]*gramSet{set})
	rows := make([][]byte, len(p.grams.buckets))
	for i, b := range p.grams.buckets {
		rows[i] = all[b : b+1]
	}
	return p.grams.units(rows)[0] == 1
}

// RequiredBy computes what a pattern requires of the index, and reports whether it requires anything.
func RequiredBy(pattern string) bool {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && newGramQuery(requiredBy(tree)) != nil
}

// IndexUnit indexes the text of a unit.
func IndexUnit(text string) { new(gramSet).add(text) }

// WithoutPrefilter returns the pattern without its prefilter: it is matched against each line.
func (p *Pattern) WithoutPrefilter() *Pattern {
	copied := *p
	copied.texts = nil
	return &copied
}

// Places returns where in a text the prefilter finds one of its texts, or nil if it cannot search that text.
func (p *Pattern) Places(text string) []int {
	if !p.texts.knows(text) {
		return nil
	}
	return slices.Collect(p.texts.places(text))
}
