package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/files"
)

// group is a run of consecutive lines of a file that has matches among them.
type group struct {
	file    string
	first   int // line number of lines[0], from 1
	lines   []string
	matches []int // line numbers
	at      []int // bytes in the matching lines at which their first matches begin
	pages   files.Pages
}

// grouped merges matches with touching or overlapping lines, so that no line is shown twice. The matches must be in
// order of file and line.
func grouped(matches []files.GrepMatch) []group {
	var groups []group
	for _, m := range matches {
		g := group{m.FileName, m.Line - len(m.Before), slices.Concat(m.Before, []string{m.Text}, m.After), []int{m.Line},
			[]int{m.At}, m.Pages}
		if n := len(groups); n > 0 && groups[n-1].touches(g) {
			groups[n-1].join(g)
			continue
		}
		groups = append(groups, g)
	}
	return groups
}

// end returns the number of the line after the group.
func (g *group) end() int { return g.first + len(g.lines) }

// touches reports whether the lines of next, a later group, follow the lines of g without a gap.
func (g *group) touches(next group) bool {
	return g.file == next.file && g.first <= next.first && next.first <= g.end()
}

func (g *group) join(next group) {
	g.matches, g.at = append(g.matches, next.matches...), append(g.at, next.at...)
	g.pages.Last = next.pages.Last
	if known := g.end() - next.first; known < len(next.lines) {
		g.lines = append(g.lines, next.lines[known:]...)
	}
	matching := next.matches[0]
	g.lines[matching-g.first] = next.lines[matching-next.first] // a long one is cut around its match
}

// cutLines cuts the lines to so many characters, the matching ones around their matches.
func (g *group) cutLines(chars int) {
	for i, line := range g.lines {
		at := 0
		if n := slices.Index(g.matches, g.first+i); n >= 0 {
			at = g.at[n]
		}
		g.lines[i] = policy.CutAround(line, at, chars)
	}
}

// String returns the group under a head. The head names the first and the last match, and their pages. Each line begins
// with its number, so that no line can look like a head.
func (g *group) String() string {
	var b strings.Builder
	place := fmt.Sprint(g.matches[0])
	if last := g.matches[len(g.matches)-1]; last > g.matches[0] {
		place += fmt.Sprintf("-%d", last)
	}
	if g.pages.First > 0 {
		place += fmt.Sprintf(" (%s)", g.pages)
	}
	fmt.Fprintf(&b, "=== %s:%s ===\n", fileName(g.file), place)
	for i, l := range g.lines {
		mark := " "
		if slices.Contains(g.matches, g.first+i) {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %d: %s\n", mark, g.first+i, shortLine(l))
	}
	return b.String()
}
